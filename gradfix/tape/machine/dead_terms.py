"""Terms of a loss that have lost their graph while the loss has one: they train nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import Role
from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import upstream
from gradfix.tape.machine.cuts import (
    CONVERSIONS,
    DETACHES,
    MODES,
    adjacent,
    behind,
    leaves_behind,
    nearest_cuts,
    nearest_graph,
    summands,
    unrecorded,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from gradfix.tape.domain.events import Backward
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.machine.severed import Severed

ENDED = frozenset({"sample", "drawn", "constant"}) | MODES
"""Cuts that are meant: a value was chosen, and what is said of it afterwards has no gradient of its own."""


def severed_terms(severed: Severed, reached: Collection[int], wanted: Collection[int]) -> None:
    """At the end: the terms of each loss that has a graph, which have none and had one."""
    for event, root in severed.backwards[severed.inherited :]:
        if root.requires is False:
            continue
        severed.taken_as_meant(root)
        loss = Loss(severed, event, event.start or severed.graph.history(root))
        for term in loss.dead:
            loss.judge(term, reached, wanted)


class Loss:
    """The terms of one loss."""

    def __init__(self, severed: Severed, event: Backward, root: Node) -> None:
        self.severed = severed
        self.event = event
        terms = list(summands(root))
        self.dead = [term for term in terms if term.requires is False]
        self.live = [term for term in terms if term.requires is not False]

    def judge(self, term: Node, reached: Collection[int], wanted: Collection[int]) -> None:
        """Report where a term lost its graph, unless that was meant."""
        cuts = [cut for cut in nearest_cuts(term, self.event.path) if behind(cut) is True]
        if not cuts or (self.event.aimed and not self.severed.is_for(self.event, term)):
            return
        if any(-1 < parent.clean < self.event.number for cut in cuts for parent in nearest_graph(cut)):
            return  # made of an earlier turn's graph: a baseline, not a term
        lost = {id(leaf): leaf for leaf in leaves_behind(term) if id(leaf) in wanted}
        never = [leaf for leaf in lost.values() if id(leaf) not in reached]
        explicit = any(one.cut in DETACHES | MODES for one in unrecorded(term))
        converted = term.cut in CONVERSIONS and not explicit and adjacent(term)
        if not converted:
            cuts = [cut for cut in cuts if cut.cut in CONVERSIONS | DETACHES and _direct(cut)]
            trained = never or any(self._brings(leaf) for leaf in lost.values())
            if not cuts or not trained or self._meant(cuts):
                return
        here = (self.event.place, Role.WITHOUT)
        gone = [] if converted or len(never) < len(lost) else never
        account = self.severed.leaves.accounts.filled(gone)
        shared = not converted and any(map(self._of_others, lost.values()))
        self.severed.report_cut(cuts[0], self.event, [here], kind="severed_term", impact="trains wrong",
                                account=account, shared=shared)  # fmt: skip

    def _brings(self, leaf: Tensor) -> bool:
        """Whether this loss brings a leaf a gradient by another term: then it is to train it."""
        return any(one.backward is self.event and one.must for one in _added(leaf))

    def _of_others(self, leaf: Tensor) -> bool:
        """Whether other losses than this one train a leaf."""
        brought = [one.backward.place is self.event.place for one in _added(leaf)]
        return bool(brought) and not any(brought)

    def _meant(self, cuts: list[Node]) -> bool:
        """Whether a dead term corrects the value of a live one, whose gradient stays, or is about a target
        that a live one has too. A term that isn't known may be that one."""
        if any(term.requires is None for term in self.live):
            return True
        parents = {id(parent) for cut in cuts for parent in cut.parents}
        below = {id(one) for one in upstream([parent for cut in cuts for parent in cut.parents])}
        if any(id(term) in below for term in self.live):
            return True
        aims = (one.parents for one in upstream(self.live) if one.cut in DETACHES)
        return any(id(parent) in parents for each in aims for parent in each)


def _added(leaf: Tensor) -> list[Add]:
    return [one for one in leaf.slot.events if isinstance(one, Add)] if leaf.slot is not None else []


def _direct(cut: Node) -> bool:
    """Whether a graph lies behind a cut that no choice and no mode has ended before."""
    near = upstream(
        cut.parents, lambda one: one.parents if one.requires is False and one.cut not in ENDED else ()
    )
    return any(one.requires is True for one in near)
