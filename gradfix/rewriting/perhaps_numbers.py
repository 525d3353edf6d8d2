"""Whether a value that is mostly a tensor may be the plain number that its name began with."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gradfix.rewriting.names import walk
from gradfix.rewriting.statements import path, siblings
from gradfix.tree import Tree

PARAMETERS = ("parameters", "named_parameters", "modules", "named_modules")
NUMBERS = (cst.Integer, cst.Float)


def may_be_number(tree: Tree, value: cst.BaseExpression) -> bool:
    """Whether a value is one on the way on which the loops and branches before it do nothing."""
    if isinstance(value, NUMBERS):
        return True
    if isinstance(value, cst.BinaryOperation):
        return may_be_number(tree, value.left) and may_be_number(tree, value.right)
    return isinstance(value, (cst.Name, cst.Attribute)) and _unchanged(tree, value)


def _unchanged(tree: Tree, value: cst.BaseExpression) -> bool:
    """Whether a name was given a number, and from there to here only loops and branches give it another."""
    name, here, number = tree.code(value), path(tree, value), False
    for place in here:
        row = siblings(tree, place)
        for before in row[: row.index(place)]:
            if _gives(tree, before, name, NUMBERS):
                number = True
            elif _surely(tree, before, name):
                number = False
    return number


def _gives(tree: Tree, place: cst.CSTNode, name: str, kinds: tuple[type[cst.CSTNode], ...]) -> bool:
    """Whether a statement is an assignment of such a value to a name."""
    return any(
        isinstance(small, cst.Assign)
        and isinstance(small.value, kinds)
        and any(tree.code(target.target) == name for target in small.targets)
        for small in _smalls(place)
    )


def _smalls(place: cst.CSTNode) -> Sequence[cst.CSTNode]:
    return place.body if isinstance(place, cst.SimpleStatementLine) else (place,)


def _surely(tree: Tree, place: cst.CSTNode, name: str) -> bool:
    """Whether a statement gives a name another value, whatever happens."""
    if isinstance(place, cst.If):
        other = place.orelse
        return other is not None and _any(tree, place.body, name) and _surely(tree, other, name)
    if isinstance(place, cst.For):
        return _runs(place.iter) and _any(tree, place.body, name)
    if isinstance(place, (cst.With, cst.Try, cst.Else)):
        return _any(tree, place.body, name)
    if isinstance(place, cst.BaseCompoundStatement):
        return False
    return any(_binds(tree, small, name) for small in _smalls(place))


def _any(tree: Tree, body: cst.BaseSuite, name: str) -> bool:
    return any(_surely(tree, each, name) for each in body.body)


def _binds(tree: Tree, small: cst.CSTNode, name: str) -> bool:
    if isinstance(small, (cst.AugAssign, cst.AnnAssign)):
        return tree.code(small.target) == name
    if not isinstance(small, cst.Assign):
        return False
    targets = (part for target in small.targets for part in walk(target.target))
    return any(isinstance(part, cst.BaseExpression) and tree.code(part) == name for part in targets)


def _runs(iterated: cst.BaseExpression) -> bool:
    """Whether a loop surely has a turn: over a display with elements, a range of a known length, or the
    parameters of a module that is trained."""
    if isinstance(iterated, (cst.List, cst.Tuple)):
        return bool(iterated.elements)
    if isinstance(iterated, cst.Call) and isinstance(iterated.func, cst.Attribute):
        return iterated.func.attr.value in PARAMETERS and not iterated.args
    if not isinstance(iterated, cst.Call) or not isinstance(iterated.func, cst.Name):
        return False
    given = [arg.value for arg in iterated.args]
    if iterated.func.value != "range" or not given:
        return False
    numbers = [int(one.value, 0) for one in given if isinstance(one, cst.Integer)]
    return len(numbers) == len(given) and bool(range(*numbers))
