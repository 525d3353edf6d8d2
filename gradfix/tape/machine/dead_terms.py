"""Terms of a loss that have lost their graph while the loss has one: they train nothing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from gradfix.defects import Role
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.in_graph import on_path
from gradfix.tape.domain.within import Within
from gradfix.tape.machine.cut_facts import is_for
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
    terms_by_way,
    unrecorded,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.machine.severed import Severed

FEW = 64
"""How much of what is behind a cut is looked at."""


def severed_terms(severed: Severed, reached: Collection[int], trained: Collection[int]) -> None:
    """At the end: terms of a loss that lost their graph while the loss has one."""
    for event, root in severed.backwards[severed.inherited :]:
        if root.requires is False:
            continue
        severed.taken_as_meant(root, event, reached)
        start = event.start or severed.graph.history(root)
        for term, way in terms_by_way(start, event.path):
            if term.requires is not False or not term.cut or behind(term) is not True:
                continue
            if way != event.path and on_path(start, way) is not True:
                continue  # it is all there is, on this way
            if any(-1 < parent.clean < event.number for parent in nearest_graph(term)):
                continue  # made of an earlier turn's graph: a baseline, not a term
            if event.aimed and not is_for(severed.graph, event, term):
                continue
            if not start.doubted and any(one.doubted for one in islice(upstream(nearest_graph(term)), FEW)):
                continue  # what is behind it may not have been recorded
            lost = {id(leaf): leaf for leaf in leaves_behind(term) if id(leaf) in trained}
            never = [leaf for leaf in lost.values() if id(leaf) not in reached]
            meant = any(one.cut in DETACHES | MODES for one in unrecorded(term))
            converted = term.cut in CONVERSIONS and not meant and adjacent(term)
            if converted or (term.cut in DETACHES and never):
                account = severed.leaves.accounts.filled([] if converted else never)
                with Within(event, severed.trail, {"path": way}):
                    steps = [(event.place, Role.WITHOUT)]
                    severed.report_cut(term, event, steps, kind="severed_term", impact="trains wrong",
                                       account=account)  # fmt: skip


def constant_terms(severed: Severed, reached: Collection[int], wanted: Collection[int]) -> None:
    """At the end: terms of a loss that are made of what was detached, where nothing else trains it."""
    for event, root in severed.backwards[severed.inherited :]:
        start = event.start or severed.graph.history(root)
        if root.requires is not True or event.aimed:
            continue
        for term in summands(start):
            cut = _detached(term, event.path) if term.requires is False and not term.cut else None
            if cut is None or any(-1 < parent.clean < event.number for parent in nearest_graph(cut)):
                continue
            never = [leaf for leaf in leaves_behind(cut, MODES) if id(leaf) not in reached]
            if any(id(leaf) in wanted for leaf in never):
                account = severed.leaves.accounts.filled(never)
                severed.report_cut(cut, event, [(event.place, Role.WITHOUT)],
                                   kind="severed_term", impact="trains wrong", account=account)  # fmt: skip


def _detached(term: Node, path: Path) -> Node | None:
    """The detach that alone keeps a term from having a graph."""
    cuts = list(nearest_cuts(term, path))
    return cuts[0] if len(cuts) == 1 and cuts[0].cut in DETACHES and behind(cuts[0]) is True else None
