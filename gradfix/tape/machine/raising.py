"""What backward raises: at what an earlier one has freed, and at what was written over since it was saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from gradfix.defects import NOTHING, Assumption, Convention, Role
from gradfix.defects.records import Freed
from gradfix.defects.written import Overwritten, Written, WrittenByModule, WrittenThroughData
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.moments import under
from gradfix.tape.domain.paths import beyond, contradicts, implies
from gradfix.tape.domain.within import Within
from gradfix.tape.effects.operations import having, layers_having, name_of_layer
from gradfix.tape.effects.repeats import put_again
from gradfix.tape.machine.cuts import ASKED, leaves_behind
from gradfix.tape.machine.opaque_saves import is_between, is_meant

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.defects import Span
    from gradfix.defects.facts import Facts
    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, Spoil, Tensor, Write
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Lean, Place
    from gradfix.tape.machine.early_steps import EarlySteps
    from gradfix.tape.machine.python import Python
    from gradfix.tape.machine.severed import Severed

FEW = 100
"""How many operations one can be told the places of."""
DRAWS = {*having("draws"), *map(name_of_layer, layers_having("drops"))}
OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"
RECORDED: frozenset[Assumption] = frozenset({Assumption.RECORDED_HERE})
LATER: frozenset[Convention] = frozenset({Convention.E})
PERHAPS = "whether a backward needs what is written over here isn't known"
TWICE = "Trying to backward through the graph a second time"


class Blamed(NamedTuple):
    """The rule that was broken, the place that breaks it, and what is known of it."""

    kind: str
    place: Place
    facts: Facts


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    whole: Callable[[], bool] | None
    loss: bool


def _for_another(earlier: Backward, event: Backward) -> bool:
    """Whether two are one backward, of which each is done for another alternative of one value."""
    chosen = dict(earlier.arms)
    return earlier.place is event.place and any(chosen.get(choice, arm) != arm for choice, arm in event.arms)


class Raising:
    """What backward finds spoiled or freed as it runs."""

    def __init__(self, severed: Severed, early_steps: EarlySteps, python: Python) -> None:
        self.severed = severed
        self.early_steps = early_steps
        self.python = python
        self.graph = severed.graph
        self.here = severed.here
        self.reports = severed.reports
        self.trail = severed.trail
        self.grad_mode = severed.graph.grad_mode
        self.recorded: tuple[Backward, dict[int, Node]] | None = None
        """A backward, and the nodes that it comes to without passing what may not have been recorded."""
        self.whole: Callable[[], bool] | None = None
        """Whether what is backpropagated came out of a whole model, which is given data."""
        self.loss = False
        """Whether it came out of a loss, which is given predictions (convention C)."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def stops(self, node: Node, event: Backward, lean: Lean, when: Path) -> bool:
        """Report what this node can't give back; True where backward goes no further.

        What is freed raises before torch looks at whether something was written to it.
        """
        if not node.spoiled and not node.freed:
            return False
        here = event.path | when
        lean = lean | self.in_doubt(node, event)
        gone = self._freed_before(node, event, here)
        if gone is None or not implies(here, gone[1]):
            self._written_since(node, event, lean, when)
        if gone is None:
            return False
        self._twice(node, gone[0], event, lean, when | gone[1])
        event.raised = True
        return True

    def by_use(self, node: Node, event: Backward, lean: Lean, when: Path) -> None:
        """Report what a step has changed of an unknown module, where nothing else can be meant."""
        if node.op != "module" or not node.spoiled or event.start is None:
            return
        if is_meant(event.start, node):
            self._written_since(node, event, lean | {Convention.C}, when)

    def perhaps(self, start: Node, beside: list[Node]) -> None:
        """Say what a backward would find written over, if it comes to it through what isn't known."""
        for node in islice(upstream(beside, _recorded), FEW):
            for spoil in node.spoiled or ():
                self.reports.silence(spoil.write.place, PERHAPS, start)

    def in_doubt(self, node: Node, event: Backward) -> Lean:
        """What it takes that a backward comes to a node: that it was recorded, and all on the way to it.

        What was entered around all that has a graph has left recording on, or the backward would fail; of a
        backward that is only thought of nobody knows that.
        """
        if event.start is None or self.grad_mode.mode_in_doubt is not False:
            return NOTHING
        if self.recorded is None or self.recorded[0] is not event:
            self.recorded = event, _surely_recorded(event.start)
        sure_nodes = self.recorded[1]
        if not any(map(_ends, sure_nodes.values())):  # all that has a graph was made in doubt
            return RECORDED if event.virtual and not event.start.doubted else NOTHING
        return NOTHING if id(node) in sure_nodes else RECORDED

    @staticmethod
    def _freed_before(node: Node, event: Backward, here: Path) -> tuple[Backward, Path] | None:
        """The earlier backward that has freed a node, and on which path."""
        for earlier, path in node.freed or () if not event.virtual else ():
            if earlier.met is event.met or contradicts(path, here):
                continue
            if not _for_another(earlier, event):
                return earlier, path
        return None

    def _written_since(self, node: Node, event: Backward, lean: Lean, when: Path) -> None:
        """Report what was written over something that a node has saved."""
        for spoil in node.spoiled or ():
            write, saved = spoil.write.path, spoil.saved.path
            paths = ((write, event.path), (saved, event.path), (when, write), (when, saved))
            if not any(contradicts(one, other) for one, other in paths):
                self._overwritten(spoil, event, lean, when)

    def _overwritten(self, spoil: Spoil, event: Backward, lean: Lean, guard: Path) -> None:
        write, saved = spoil.write, spoil.saved
        if write.form == "buffer":
            return
        if spoil.silent and put_again(write, saved):
            return
        steps = [(saved.node.place, Role.SAVED), (write.place, Role.OVERWRITTEN)]
        if not event.virtual:
            steps.append((event.place, Role.BACKWARD))
        lean = _on_the_way(event, lean, write.path | saved.path | guard)
        lean = lean | saved.lean | event.lean | write.lean | (LATER if write.later else NOTHING)
        if saved.node.op == "module" and event.start is not None and is_between(saved.node, event.start):
            lean = lean | {Assumption.NEEDS_WEIGHTS}
        if self.loss and Assumption.INPUT_LEARNS in lean:
            lean = lean - {Assumption.INPUT_LEARNS} | {Convention.C}
        alternative = saved.path - write.path
        unrecorded = saved.tensor.storage.lent or any(one.unrecorded for one in saved.writes)
        if Convention.D in lean and saved.argument and unrecorded:
            return  # what came in is data, as it is written where nothing is recorded
        if Convention.D in lean and saved.argument and write.form == "setitem":
            return  # entries of what came in: as often boxes as features
        if Convention.D in lean and self._prepares(saved.node):
            return
        if event.virtual and self._picked_apart(write.path | saved.path):
            return
        when = beyond(write.path | alternative | guard | event.assumed, event.path - event.assumed)
        kind, culprit, facts = self._blamed(spoil, event, steps)
        self.reports.report(kind, culprit, steps, facts, lean=lean, when=when,
                    impact="trains wrong" if spoil.silent else "crashes",
                    says="" if spoil.silent else OVERWRITTEN,
                    along=write.path | saved.path | event.path)  # fmt: skip

    def _picked_apart(self, path: Path) -> bool:
        """Whether two turns of a loop have to meet different things: who says that a module is built so?"""
        picks = self.severed.tested.picks
        return len({picks[key] for key, holds in path if holds and key in picks}) > 1

    def _prepares(self, node: Node) -> bool:
        """Whether a node stands before the first layer of a whole model: it is given data."""
        if self.whole is None or any(leaf.parameter for leaf in leaves_behind(node)):
            return False
        return self.whole()

    def _blamed(self, spoil: Spoil, event: Backward, steps: list[tuple[Place, Role]]) -> Blamed:
        """What an overwriting has broken."""
        write = spoil.write
        if write.form == "step":
            event.spoilt.add(id(write.place))
            facts = replace(
                self.early_steps.facts(write, event),
                saved=self.reports.span(spoil.saved.node.place),
                draws=bool(self._built(event)[1]),
            )
            return Blamed("step_before_backward", write.place, facts)
        known = self._known(spoil, event).named()
        if write.form == "module":
            built = write.built or write.place
            steps.append((built, Role.BUILT_IN_PLACE))
            return Blamed("inplace_module", built, WrittenByModule(**known, module=write.module))
        if spoil.silent:
            return Blamed("write_through_data", write.place, WrittenThroughData(**known))
        return Blamed("inplace_overwrites_saved", write.place, Overwritten(**known))

    def _known(self, spoil: Spoil, event: Backward) -> Overwritten:
        """What a rewrite has to know of a write and of what it went over."""
        write, node = spoil.write, spoil.saved.node
        known = (write.written or Written()).named()
        facts = Overwritten(
            **{**known, "form": write.form}, saver=node.op, save=self.reports.span(node.place)
        )
        facts = replace(facts, carries=self._carries(spoil, event, facts.target))
        return facts if write.leaf is None else self._late(write, write.leaf, event, facts)

    def _carries(self, spoil: Spoil, event: Backward, target: str) -> bool:
        """Whether the next turn saves what is written with the graph of this one: then torch raises for that
        instead. What is held by an object lives on where nobody knows who calls."""
        owner = spoil.saved.tensor.base or spoil.saved.tensor
        if spoil.write.leaf is not None or owner.storage.argument or self.graph.requires(owner) is not True:
            return False
        if any(above.cut for above in spoil.saved.node.parents):
            return False  # the turn begins with a cut
        return "." in target if event.virtual else self.python.lives_on(owner)

    def _late(self, write: Write, leaf: Tensor, event: Backward, facts: Overwritten) -> Overwritten:
        """A leaf is to be written behind the backward that needs its old values."""
        facts = replace(facts, parameter=True)
        if event.virtual or event.moment is None or write.moment is None:
            return facts
        seen, place = under(write.moment, (event.moment.site,))
        return replace(
            facts,
            backward=self.reports.span(event.place),
            under=self.reports.span(place) if seen else None,
            until=self.early_steps.optimizers.until(event.moment, leaf),
        )

    def _built(self, event: Backward) -> tuple[tuple[Span, ...], tuple[Span | None, ...]]:
        """Where the operations stand that a backward walks, or nothing; where those do that draw."""
        roots = [self.graph.history(event.root)] if event.root is not None else []
        below = list(islice(upstream(roots), FEW))
        recorded = (one for one in below if one.requires is not False and one.leaf is None)
        spans = [self.reports.span(one.place) for one in recorded]
        found = tuple(dict.fromkeys(span for span in spans if span is not None))
        drawn = [self.reports.span(one.place) for one in below if _draws(one)]
        return (found if len(below) < FEW and None not in spans else ()), tuple(dict.fromkeys(drawn))

    def _comes_to(self, event: Backward, asked: Place) -> bool:
        """Whether a backward starts from what was made of gradients that were asked for there."""
        starts = [event.start] if event.start is not None else []
        return any(one.cut == ASKED and one.cut_place is asked for one in islice(upstream(starts), FEW))

    def _twice(self, node: Node, earlier: Backward, event: Backward, lean: Lean, guard: Path) -> None:
        steps = [
            (node.place, Role.SHARED),
            (earlier.place, Role.FREES),
            (event.place, Role.NEEDS_AGAIN),
        ]
        outside, spared = self.python.outside(node, earlier, event), self.early_steps.spared(event)
        if node.doubted and self.grad_mode.mode_in_doubt is False:
            lean = lean | RECORDED
        built, drawn = self._built(event)
        self.reports.report(
            "backward_twice",
            earlier.place,
            steps,
            Freed(
                again=self.reports.span(event.place),
                outside=outside,
                spared=spared,
                reached=self.early_steps.reached(event),
                perhaps=self.early_steps.reached(event, perhaps=True) or (),
                frozen=self.early_steps.frozen(),
                built=built,
                draws=bool(drawn),
                drawn=drawn,
                shared=self.reports.span(node.place),
                stepped=self.early_steps.stepped(
                    earlier, event, grows=earlier.place is event.place and not outside
                ),
                returned=earlier.returns and self._comes_to(event, earlier.place),
            ),
            lean=lean | node.lean,
            when=event.path | guard,
            says=TWICE,
        )


def _surely_recorded(start: Node) -> dict[int, Node]:
    """What a backward comes to past nothing that may not have been recorded, and has a graph."""
    live: dict[int, Node] = {}
    for node in sorted(upstream([start], _either_way), key=lambda one: one.born):
        if (not node.doubted and _ends(node)) or any(id(one) in live for one in _either_way(node)):
            live[id(node)] = node
    return {key: node for key, node in live.items() if not node.doubted}


def _either_way(node: Node) -> tuple[Node, ...]:
    """What a backward goes on to from a node, recorded or not: a write that isn't leaves what it was."""
    if not node.doubted:
        return node.parents
    return node.parents[:1] if node.writes else ()


def _recorded(node: Node) -> tuple[Node, ...]:
    """What went into a node that may have a graph."""
    return node.parents if node.requires is not False else ()


def _ends(node: Node) -> bool:
    """Whether a node is a leaf that a gradient comes to, came in with a graph, or may have one behind it."""
    return node.requires is None or (node.requires and (node.leaf is not None or not node.parents))


def _draws(node: Node) -> bool:
    """Whether what made a node draws random numbers."""
    return node.op in DRAWS or (node.facts or {}).get("factory") in DRAWS


def _on_the_way(event: Backward, lean: Lean, path: Path) -> Lean:
    """What it takes that the root of a backward has a graph, on a path on which it is one of several."""
    node = event.start
    while node is not None and node.guards is not None:
        ways = [
            one for way, one in zip(node.guards, node.parents, strict=False) if not contradicts(way, path)
        ]
        if len(ways) != 1 or ways[0].requires is not True:
            return lean
        node = ways[0]
    return lean if node is None or node is event.start else node.lean
