"""Cuts in a row, each of which keeps the same graph from a root: which is nearest to it, which is alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from gradfix.tape.domain.graph import upstream
from gradfix.tape.machine.cuts import CHOOSING, CONVERSIONS, DETACHES, behind, nearest_cuts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Place

MANY = 50
"""How many cuts of a row are looked at."""


class Behind(NamedTuple):
    """What comes next behind a cut, once it is gone."""

    recorded: list[Node]
    """What is in a graph, or may be."""
    cuts: list[Node]
    """What keeps others out of it."""


def last_in_row(cut: Node) -> Node:
    """The cut that is nearest to the graph, of all that keep the same from a root; where several are,
    the first of all."""
    last: dict[int, Node] = {}

    def onward(one: Node) -> Iterable[Node]:
        next_behind = _next_behind(one)
        if any(node.requires is True for node in next_behind.recorded):
            last.setdefault(id(one.cut_place), one)
        return () if next_behind.recorded else next_behind.cuts

    for seen, _ in enumerate(upstream([cut], onward)):
        if seen > MANY:
            return cut
    return next(iter(last.values())) if len(last) == 1 else cut


def alone(cut: Node, root: Node | None, path: Path) -> bool:
    """Whether a gradient would pass from a root, and on behind a cut, if that one were gone."""
    next_behind = _next_behind(cut)
    if next_behind.cuts and not next_behind.recorded:
        return False
    return root is None or any(_one(each, cut) or _of_choice(each, cut) for each in nearest_cuts(root, path))


def _next_behind(cut: Node) -> Behind:
    found, taken = Behind([], []), _taken_with(cut)

    def onward(node: Node) -> Iterable[Node]:
        if node.requires is not False:
            found.recorded.append(node)
        elif not node.cut or taken(node):
            return node.parents
        elif behind(node) is not False:
            found.cuts.append(node)
        return ()

    for _ in upstream(cut.parents, onward):
        pass
    return found


def _taken_with(cut: Node) -> Callable[[Node], bool]:
    """Whether who takes a cut out takes out another one as well: of one block; of a number that was converted
    there and back; inside of the same expression."""
    places = [cut.cut_place]

    def taken(node: Node) -> bool:
        if _one(node, cut):
            return True
        if node.cut in CONVERSIONS and cut.cut in CONVERSIONS:
            places.append(node.cut_place)
            return True
        return node.cut in DETACHES and any(_inside(node.cut_place, place) for place in places)

    return taken


def _one(node: Node, cut: Node) -> bool:
    return node is cut or (cut.cut_place is not None and node.cut_place is cut.cut_place)


def _of_choice(node: Node, cut: Node) -> bool:
    """Whether it is made of an index alone, and goes with what stands in for that."""
    return cut.op in CHOOSING and len(node.parents) == 1 and node.parents[0] is cut


def _inside(place: Place, around: Place) -> bool:
    return isinstance(around, ast.expr) and any(node is place for node in ast.walk(around))
