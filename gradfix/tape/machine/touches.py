"""Answers what touches some leaves or their gradients between two moments, and what of it isn't known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from gradfix.defects import Touch
from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.moments import under
from gradfix.tape.domain.values import Alt, Seq, Unknown

if TYPE_CHECKING:
    from gradfix.defects import Span, Touched, TouchKind
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.moments import Moment, Timeline
    from gradfix.tape.domain.values import Place

GRADIENTS = frozenset({"clears", "fills", "changes", "looks", "anything"})


def of_gradients(touches: Touched) -> Touched:
    """Those that concern gradients, and not only the values of leaves."""
    return None if touches is None else tuple(touch for touch in touches if touch.kind in GRADIENTS)


class Reach(Protocol):
    """Who can get at leaves: asked of code that isn't known and of what it is given."""

    def holds(self, values: Sequence[object], memory: frozenset[int]) -> bool:
        """Whether values hold leaves of this memory, or may."""

    def exposed(self, memory: frozenset[int], before: Iterable[Moment]) -> bool:
        """Whether code that was given nothing may get at leaves of this memory."""

    def stranger(self, callee: object) -> bool:
        """Whether it isn't known what code a call runs, or where that comes from."""

    def clearing(self, given: object) -> Iterable[object]:
        """What of this is a function that clears gradients, or has one as a method."""


class Touches:
    """What touches the leaves between two moments."""

    def __init__(self, timeline: Timeline, reach: Reach, span: Callable[[Place], Span | None]) -> None:
        self.timeline = timeline
        self.reach = reach
        self.span = span
        self.known: dict[tuple[int, int, int], tuple[Sequence[Tensor], Touched]] = {}
        """Answers, with the leaves that were asked about: one of them is asked for each leaf of a step."""

    def between(self, first: Moment, last: Moment, leaves: Sequence[Tensor]) -> Touched:
        """All of it, in its order and each once; None where the order isn't known."""
        key = (first.number, last.number, id(leaves))
        if key not in self.known:
            self.known[key] = leaves, self._between(first, last, leaves)
        return self.known[key][1]

    def until(self, last: Moment, leaves: Sequence[Tensor]) -> Touched:
        """All of it before a moment, as who runs then sees it."""
        return self.between(self.timeline.beginning(last), last, leaves)

    def filled(self, now: Moment, leaves: Sequence[Tensor]) -> Touched:
        """What ever fills gradients, as who runs now sees it."""
        found = self._between(self.timeline.beginning(now), self.timeline.ending(now), leaves)
        return None if found is None else tuple(touch for touch in found if touch.kind == "fills")

    def kept_otherwise(self, now: Moment, leaves: Sequence[Tensor]) -> list[Moment] | None:
        """When somebody writes leaves by hand, or code that isn't known may do anything to them; None where
        the order isn't known, or it is for others to say, who ran then."""
        first, last = self.timeline.beginning(now), self.timeline.ending(now)
        moments = self.timeline.between(first, last) if now.number >= self.timeline.first else None
        if moments is None:
            return None
        target = Target(self, first, leaves)
        told = ((moment, target.touch(moment)) for moment in moments)
        return [moment for moment, touch in told if touch is not None and touch[0] in ("writes", "anything")]

    def _between(self, first: Moment, last: Moment, leaves: Sequence[Tensor]) -> Touched:
        moments = self.timeline.between(first, last)
        if moments is None:
            return None
        found: dict[Touch, None] = {}
        target = Target(self, first, leaves)
        for moment in moments:
            if moment.place is last.place and moment.site is last.site:
                continue
            told = target.touch(moment)
            if told is not None:
                seen, place = under(moment, (first.site, last.site))
                kind, whole, known = told
                found[Touch(self.span(place) if seen else None, kind, whole, known)] = None
        return tuple(found)


class Target:
    """The leaves that are asked about."""

    def __init__(self, touches: Touches, first: Moment, leaves: Sequence[Tensor]) -> None:
        self.reach = touches.reach
        self.earlier = touches.timeline.earlier(first)
        self.leaves = {id(leaf) for leaf in leaves}
        self.memory = frozenset(id(leaf.storage) for leaf in leaves)
        self.filling = {id(event) for leaf in leaves for event in _backwards(leaf)}
        self._exposed: bool | None = None

    def touch(self, moment: Moment) -> tuple[TouchKind, bool, bool] | None:
        """How something touches the leaves: the kind, whether all of them, whether surely; None: not."""
        deed = moment.deed
        if deed == "reads" or deed == "writes":
            return (deed, True, True) if any(map(self._shows, moment.what)) else None
        if deed == "fills":
            return ("fills", True, True) if any(id(one) in self.filling for one in moment.what) else None
        if deed == "uses":
            return ("reads", True, True) if self.reach.holds(moment.what, self.memory) else None
        if deed == "anything" or deed == "may step":
            kind: TouchKind = "steps" if deed == "may step" else "anything"
            return (kind, True, False) if self._reached(moment) else None
        own = self.leaves.intersection(map(id, moment.what))
        return (deed, len(own) == len(self.leaves), True) if own else None

    def _shows(self, value: object) -> bool:
        """Whether an operand is a leaf or a view of one."""
        if isinstance(value, Tensor):
            return id(value.storage) in self.memory
        if isinstance(value, Unknown):
            return value.tensor is not None and id(value.tensor.storage) in self.memory
        if isinstance(value, Seq):
            return any(self._shows(item) for item in value.items if item is not value)
        return isinstance(value, Alt) and any(self._shows(option) for _, option in value.options)

    def _reached(self, moment: Moment) -> bool:
        """Whether a call that isn't followed may get at the leaves."""
        if self.reach.holds(moment.what, self.memory):
            return True
        if not self.reach.stranger(moment.what[0]):
            return False
        if self._exposed is None:
            self._exposed = self.reach.exposed(self.memory, self.earlier)
        return self._exposed


def _backwards(leaf: Tensor) -> Iterator[Backward]:
    events = leaf.slot.events if leaf.slot is not None else ()
    return (event.backward for event in events if isinstance(event, Add))
