"""Accounts: all that could have supplied what a claim says is missing, and what of it isn't known.

A rule that says "nothing fills, clears, holds, keeps or walks this" asks here, of which leaves or graph and
between which moments. What was followed has left its events, and the rule knows them. What wasn't is listed
here in one way: the calls that could get at it, the backwards that came to what isn't known, the optimizers
of which it isn't known what they hold. Each is a gap with its reason, and a claim with a gap is a suspect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Assumption, Convention, Gap
from gradfix.defects.reasons import Reason, What
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.moments import NEVER
from gradfix.tape.domain.paths import contradicts
from gradfix.tape.domain.values import External, Value
from gradfix.tape.domain.why import Why

if TYPE_CHECKING:
    from gradfix.defects import Lean
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.moments import Moment, Timeline
    from gradfix.tape.domain.torch_values import Optimizer
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.optimizers import Optimizers

SOME = 3
"""How many gaps of a kind are told: one is enough for a doubt."""
UNFINISHED = Gap(Assumption.ALL_HAS_RUN, Reason(What.BUDGET, "the rest of this file"))
"""What an account lacks where not everything was run."""


@dataclass(frozen=True, slots=True)
class Account:
    """What was looked for, and what of it isn't known."""

    sought: Assumption
    gaps: tuple[Reason, ...] = ()
    """What isn't known that could have."""
    conventions: Lean = NOTHING
    """What says that nobody else is asked."""

    @property
    def whole(self) -> bool:
        """Whether nothing is missing in it."""
        return not self.gaps

    @property
    def lean(self) -> Lean:
        """What a claim leans on that follows from it."""
        return self.conventions | {Gap(self.sought, reason) for reason in self.gaps}


class Accounts:
    """Draws up the accounts of one entry."""

    def __init__(self, graph: Graph, optimizers: Optimizers) -> None:
        self.graph = graph
        self.here = graph.here
        self.timeline = graph.timeline
        self.findings = graph.reports.findings
        self.optimizers = optimizers

    def of(self, sought: Assumption, whys: Iterable[Why], conventions: Lean = NOTHING) -> Account:
        """An account in which these aren't known."""
        few = islice(dict.fromkeys(whys), SOME)
        return Account(sought, tuple(self.findings.reason(why) for why in few), conventions)

    def filled(
        self, leaves: Sequence[Tensor], since: Moment | None = None, more: Iterable[Why] = ()
    ) -> Account:
        """What may have brought gradients to leaves.

        A call may if it had the leaves, or a graph that leads there: that also before anything was seen to
        train. What a skipped call of known code made of the leaves that it names may be in the root of any
        backward.
        """
        first = since.number if since is not None else NEVER - 1
        each = (why for leaf in leaves for why in self.calls(self._fills(leaf), first))
        return self.of(Assumption.NOBODY_ELSE_FILLS, (*more, *each))

    def strangers(self, leaf: Tensor) -> Iterator[Moment]:
        """The calls that weren't followed and had a leaf, or a graph that leads there."""
        return self._unfollowed(self._fills(leaf), NEVER - 1)

    def held(
        self, sought: Assumption, leaves: Sequence[Tensor], known: Sequence[Optimizer], more: Iterable[Why]
    ) -> Account:
        """What may have got leaves to step them: an optimizer, or code that may make one."""
        unseen = [Why(What.OPTIMIZER, f"`{one.name}`" if one.name else "", one.place)
                  for one in known if not one.complete]  # fmt: skip
        if not known:  # who trains a module trains its parameters
            return self.of(sought, more, frozenset({Convention.D}))
        return self.of(sought, (*unseen, *more, *self.had(leaves)), frozenset({Convention.B}))

    def had(self, leaves: Sequence[Tensor], since: int | None = None) -> Iterator[Why]:
        """The calls that weren't followed and had some of the leaves, after a moment if one is named."""
        if not leaves:
            return iter(())
        return self.calls(lambda moment: self._stranger(moment) and self.holds(moment.what, leaves), since)

    def holds(self, values: Sequence[object], leaves: Sequence[Tensor]) -> bool:
        """Whether leaves can be got at through values, or may be."""
        touches = self.optimizers.touches
        memory = frozenset(id(leaf.storage) for leaf in leaves)
        return touches is None or touches.reach.holds(values, memory)

    def calls(self, gets_at: Callable[[Moment], bool], since: int | None = None) -> Iterator[Why]:
        """Why it isn't known what the calls did that weren't followed and that could get at something.

        Where a moment is named, those before it don't count, but for known code that was skipped; and what
        happened before anything trains doesn't either.
        """
        return map(why_of_call, self._unfollowed(gets_at, since))

    def _unfollowed(self, gets_at: Callable[[Moment], bool], since: int | None) -> Iterator[Moment]:
        for moment in self.timeline.unfollowed():
            late = since is None or moment.number > since or (moment.skipped and moment.number >= 0)
            if late and not contradicts(moment.path, self.here.path) and gets_at(moment):
                yield moment

    def clearing(self, leaves: Sequence[Tensor]) -> Iterator[Why]:
        """The calls that were given a function that clears: it may be called at any time."""
        if (touches := self.optimizers.touches) is None:
            return
        for moment in self.timeline.unfollowed():
            given = [function for one in moment.what for function in touches.reach.clearing(one)]
            if given and self._stranger(moment) and self.holds(given, leaves):
                yield why_of_call(moment)

    def _fills(self, leaf: Tensor) -> Callable[[Moment], bool]:
        def fills(moment: Moment) -> bool:
            if not (moment.skipped or self._stranger(moment)):
                return False
            known = moment.skipped or moment.number >= self.timeline.first - 1
            if known and self.holds(moment.what, [leaf]):
                return True
            values = (value for value in moment.what if isinstance(value, Value))
            nodes = [node for value in values for node in self.graph.given(value)]
            return any(node.leaf is leaf for node in upstream(nodes, _recorded))

        return fills

    def _stranger(self, moment: Moment) -> bool:
        touches = self.optimizers.touches
        return touches is None or touches.reach.stranger(moment.what[0])


def why_of_call(moment: Moment) -> Why:
    """Why it isn't known what a call did."""
    if moment.why is not None:
        return moment.why
    place = moment.place if moment.place is not None or moment.site is None else moment.site.place
    if moment.skipped:
        return Why(What.BUDGET, "a call that is left out as it costs too much", place)
    callee = moment.what[0] if moment.what else None
    name = f"`{callee.path}`" if isinstance(callee, External) and place is None else ""
    return Why(What.CALLED, name, place)


def newest_call(timeline: Timeline) -> Why:
    """Why it isn't known what is done with that which is handed out now."""
    call = timeline.stranger
    if call is None:
        return Why(What.CALLED)
    if call.why is None:
        call.why = why_of_call(call)
    return call.why


def _recorded(node: Node) -> tuple[Node, ...]:
    """What a backward from a node may go on to."""
    return node.parents if node.requires is not False else ()
