"""Whole terms of a loss that teach nothing, though what was cut off below them learns from its other terms.

That a term was meant to teach is claimed only where hardly anything else can be meant by the cut: no term
that learns is behind it (then its value is corrected, and its gradient stays), nor made of what is cut off
there as well (a target, a weight), nor says the same with the cut on its other side; no test chooses the cut,
and no other backward walks what is behind it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects import Assumption, Convention
from gradfix.defects.leaning import NOTHING, weight
from gradfix.defects.reasons import What
from gradfix.defects.roles import Role
from gradfix.tape.domain.events import Add, Clear, Use
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.in_graph import on_path
from gradfix.tape.domain.why import Why
from gradfix.tape.domain.within import Within
from gradfix.tape.effects.operations import also_in_place, having, where
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.machine import rows
from gradfix.tape.machine.cuts import (
    CHOOSING,
    CONVERSIONS,
    DETACHES,
    LOSSES,
    MODES,
    SUMS,
    behind,
    copied,
    leaves_behind,
    nearest_cuts,
    nearest_graph,
    summands,
    summands_by_way,
    terms_in,
    unrecorded,
)
from gradfix.tape.machine.deeds import unknown_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gradfix.tape.domain.events import Backward, SlotEvent
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Lean
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.program import Program
    from gradfix.tape.machine.severed import Severed

CHOICE = "constant"
"""How what has no derivative cuts. Who uses the index of the best of some scores wants these to learn; what
only takes a shape, or counts, may be meant as a number."""
CHOSEN = MODES | {"sample", "drawn", CHOICE}
"""What ends a graph on purpose, for what is detached or converted afterwards."""
TAKING = also_in_place(having("takes-away"))
REDUCING = also_in_place(where("shape", "reduced") & having("additive"))
ADDING = SUMS - TAKING - {"scale"}
"""What adds all that went into it."""
FAR = 4000
"""How many operations of a loss are looked through; what is larger isn't judged."""


class Dead(NamedTuple):
    """A term without a graph, the path on which it is one, and what keeps it from having one."""

    term: Node
    way: Path
    cuts: list[Node]

    @property
    def behind(self) -> Iterator[Node]:
        """All that it was made of beyond its cuts."""
        return upstream([parent for cut in self.cuts for parent in cut.parents])


@dataclass(frozen=True, slots=True)
class Meant:
    """A term that was meant to teach, and the cut that keeps it from that."""

    dead: Dead
    cut: Node
    unknown: list[Node]
    """What may be what it only corrects the value of."""
    taken: bool
    """Whether it may be what a difference is held to."""


class Loss:
    """A loss that is backpropagated, by its terms."""

    def __init__(self, event: Backward, start: Node) -> None:
        self.event = event
        self.start = start
        terms = list(summands_by_way(start, event.path))
        self.live = [one for one, _ in terms if one.requires is True]
        self.unknown = [one for one, _ in terms if one.requires is None]
        cut = ((one, way, list(nearest_cuts(one, way))) for one, way in terms if one.requires is False)
        self.dead = [Dead(*one) for one in cut if one[2]]

    def meant(self) -> Iterator[Meant]:
        """The terms that were meant to teach."""
        if not self.dead or not self.live:
            return
        learnt = _looked_through(upstream([*self.live, *self.unknown]))
        beyond = [_looked_through(one.behind) for one in self.dead]
        if learnt is None or None in beyond or self._corrects(beyond):
            return
        constants = {
            made for one in learnt if one.cut for each in (one, *one.parents) for made in _made(each)
        }
        for dead, below in zip(self.dead, beyond, strict=True):
            cut = _to_blame(dead.cuts)
            if cut is None or any(not constants.isdisjoint(_made(one)) for one in (cut, *cut.parents)):
                continue
            if not self._other_side(dead, cut) and self._beside_others(dead.way):
                unknown = [*self.unknown, *_unknown(learnt), *_unknown(below or ())]
                yield Meant(dead, cut, unknown, _on_purpose(cut) and self._taken(dead.term))

    def _corrects(self, beyond: Iterable[list[Node] | None]) -> bool:
        """Whether a term without a graph takes the value of one that learns for its own."""
        live = {id(copied(one)) for one in self.live}
        return any(id(one) in live for below in beyond for one in below or ())

    def _other_side(self, dead: Dead, cut: Node) -> bool:
        """Whether a term that learns is the same of what was cut off, or of another one like that: the loss
        has both its sides, and each is held where the other one learns."""
        near = nearest_graph(cut)
        ids, like = {id(one) for one in near}, {copied(term).op for one in near for term in summands(one)}
        if like <= LOSSES and any(one is dead.term for one in upstream([self.start], _added)):
            like = set()  # one loss and another, not the difference of two
        same = [one for one in self.live if one.op == dead.term.op]
        return any(copied(one).op in like for one in self.live) or any(
            id(one) in ids for one in upstream(same, _recorded)
        )

    def _taken(self, term: Node) -> bool:
        """Whether a term, and one that learns, are the sides of a difference of which each element is one."""
        stack, seen = [(self.start, False, False, False)], set[tuple[int, bool, bool, bool]]()
        while stack:
            one, inside, taken, joined = stack.pop()
            if one is term and taken and joined:
                return True
            joined = joined or (inside and one.requires is not False)
            inside = inside or one.op in REDUCING
            taken = taken or (inside and one.op in TAKING)
            if (id(one), inside, taken, joined) not in seen:
                seen.add((id(one), inside, taken, joined))
                stack.extend((parent, inside, taken, joined) for parent in terms_in(one))
        return False

    def _beside_others(self, way: Path) -> bool:
        """Whether the loss has other terms on the path on which this is one."""
        return way == self.event.path or on_path(self.start, way) is True

    def taught(self, cut: Node) -> list[Add]:
        """What this backward surely brings to leaves behind a cut, by other terms."""
        ends = CHOSEN - {cut.cut}
        leaves = [leaf for parent in cut.parents for leaf in leaves_behind(parent, ends)]
        slots = [leaf.slot for leaf in leaves if leaf.slot is not None]
        adds = (one for slot in slots if self._is_used(slot.events) for one in slot.events)
        return [one for one in adds if isinstance(one, Add) and one.backward is self.event and one.must]

    def _is_used(self, events: Sequence[SlotEvent]) -> bool:
        """Whether nobody clears what it brings to a gradient, in any turn, before a step has used it."""
        brought = False
        for one in events:
            if isinstance(one, Add):
                brought = brought or one.backward.place is self.event.place
            elif brought and isinstance(one, Clear):
                return False
            elif isinstance(one, Use):
                brought = False
        return True

    def doubted(self, meant: Meant) -> bool:
        """Whether what is behind a cut may not have been recorded, though the loss was."""
        return not self.start.doubted and any(one.doubted for one in islice(meant.dead.behind, FAR))

    def walked_elsewhere(self, cut: Node, everywhere: Sequence[Severed]) -> bool:
        """Whether another backward walks what is behind a cut, or what is made there in another turn."""
        near = nearest_graph(cut)
        own = {id(one.place) for one in upstream([self.start], _recorded)}
        places = {id(one.place) for one in near if one.place is not None} - own
        ids = {id(one) for one in near if one.leaf is None}
        for severed in everywhere:
            for event, root in severed.backwards:
                walked = upstream([event.start or severed.graph.history(root)], _recorded)
                if event is not self.event and any(
                    id(one) in ids or id(one.place) in places for one in islice(walked, FAR)
                ):
                    return True
        return False


def dead_addends(vm: Interpreter, everywhere: Sequence[Severed]) -> None:
    """At the end: terms of a loss without a graph, where the others teach what is cut off from them."""
    severed = vm.machine.severed
    for event, root in severed.backwards[severed.inherited :]:
        if root.requires is not True or event.aimed:
            continue
        loss = Loss(event, event.start or severed.graph.history(root))
        for one in loss.meant():
            taught = loss.taught(one.cut)
            if taught and not loss.doubted(one) and not loss.walked_elsewhere(one.cut, everywhere):
                _report(vm, event, one, taught)


def _report(vm: Interpreter, event: Backward, meant: Meant, taught: list[Add]) -> None:
    severed, handed, cut = vm.machine.severed, vm.strangers.passed_on, meant.cut
    accounts = severed.leaves.accounts
    whys = [handed[id(one)] for one in nearest_graph(cut) if id(one) in handed]
    account = accounts.of(Assumption.NOBODY_ELSE_WALKS, whys)
    corrected = accounts.of(Assumption.NOTHING_CORRECTED, _whys(meant.unknown))
    lean = min((one.lean for one in taught), key=weight) | corrected.lean | _leaning(vm.program, meant)
    kind = "" if cut.cut == CHOICE else "severed_term"
    with Within(event, severed.trail, {"path": meant.dead.way}):
        steps = [(event.place, Role.WITHOUT)]
        severed.report_cut(cut, event, steps, kind=kind, impact="trains wrong", account=account, lean=lean)


def _leaning(program: Program, meant: Meant) -> Lean:
    """What it takes that a term was meant to teach, where a cut is nothing but that."""
    if not _on_purpose(meant.cut):
        return NOTHING
    lean: Lean = frozenset({Assumption.NO_TARGET} if meant.taken else ())
    if meant.cut.cut == CHOICE:
        return lean
    chosen = all(one.leaf is not None for one in meant.cut.parents) or _by_a_test(program, meant.cut)
    return lean | {Assumption.CUT_BY_MISTAKE if chosen else Convention.I}


def _by_a_test(program: Program, cut: Node) -> bool:
    """Whether a test decides that something is cut off, which is made either way."""
    made = {id(one.place) for one in nearest_graph(cut)}
    tests = (
        {id(within) for within in ast.walk(one)}
        for text in (program.tree, *(code.node for code in program.codes.values()))
        for one in all_in(text)
        if isinstance(one, (ast.If, ast.IfExp))
    )
    return any(id(cut.cut_place) in within and made.isdisjoint(within) for within in tests)


def _whys(unknown: Iterable[Node]) -> Iterator[Why]:
    return (why or Why(What.COMPUTED, "a term") for why in map(unknown_behind, unknown))


def _unknown(nodes: Iterable[Node]) -> list[Node]:
    return [one for one in nodes if one.may and one.requires is None]


def _to_blame(cuts: list[Node]) -> Node | None:
    """The one cut that keeps a term from having a graph, where that was not to be."""
    if all(cut.cut == CHOICE for cut in cuts):
        first = list(map(rows.last_in_row, cuts))
        one = len({id(cut.cut_place) for cut in first}) == 1 and first[0].op in CHOOSING
        return first[0] if one and behind(first[0]) is True else None
    if not all(cut.cut in CONVERSIONS | DETACHES for cut in cuts):
        return None
    direct = [cut for cut in cuts if _direct(cut)]
    return direct[0] if len({id(cut.cut_place) for cut in direct}) == 1 else None


def _on_purpose(cut: Node) -> bool:
    """Whether a cut, or one next to it, is nothing but that."""
    return cut.cut == CHOICE or any(one.cut in DETACHES for one in unrecorded(cut))


def _direct(cut: Node) -> bool:
    """Whether a graph lies behind a cut that nothing has ended on purpose before."""
    near = upstream(
        cut.parents, lambda one: () if one.requires is not False or one.cut in CHOSEN else one.parents
    )
    return any(one.requires is True for one in near)


def _made(node: Node) -> Iterator[object]:
    """A node, and what it is made by and of: another one of these has the same value."""
    yield id(node)
    if node.parents and node.leaf is None:
        yield node.op, tuple(map(id, node.parents))


def _recorded(node: Node) -> tuple[Node, ...]:
    return node.parents if node.requires is not False else ()


def _added(node: Node) -> tuple[Node, ...]:
    """What is added to others in a node, and not taken away."""
    return node.parents if node.op in ADDING and not node.cut else ()


def _looked_through(nodes: Iterator[Node]) -> list[Node] | None:
    """All of some nodes, where they aren't too many."""
    found = list(islice(nodes, FAR))
    return found if len(found) < FAR else None
