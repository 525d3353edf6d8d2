"""Which turns of a counted loop are run where not all are: those that its tests of the count tell apart."""

from __future__ import annotations

import ast
import operator
from itertools import pairwise
from typing import TYPE_CHECKING

from gradfix.tape.domain.values import Const
from gradfix.tape.interpreter.conditions import COMPARE
from gradfix.tape.interpreter.inside import all_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gradfix.tape.interpreter.interpreter import Interpreter

TRIED = 1000
"""In how many turns a test of the count is tried."""
MOST = 4
"""How many turns are run at most."""
FEW = 4
"""How many turns are run one after the other where those between two do something else."""
COMPUTED: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def telling_turns(vm: Interpreter, node: ast.For | ast.AsyncFor, name: str, whole: range) -> list[int]:
    """The first two turns; where the count is tested, the last, and each in which a test comes out anew."""
    tests = list(_tests(node, name))
    if not tests and not _handed_on(node, name):
        return [*whole[:2]]
    known = _constants(vm, tests)
    mark = id(node), whole, *sorted(known.items())
    if mark not in vm.program.telling:
        numbers = _told_apart(tests, known, name, whole)
        if any(unlike(vm, node, name, *pair) for pair in pairwise(numbers)):
            numbers = sorted({*numbers, *whole[:FEW]}, reverse=whole.step < 0)
        vm.program.telling[mark] = numbers
    return vm.program.telling[mark]


def _told_apart(tests: list[ast.expr], known: Mapping[str, float], name: str, whole: range) -> list[int]:
    numbers = [*whole[:2], whole[-1]]
    for test in tests:
        met = {_outcome(test, {**known, name: number}) for number in numbers}
        tried = (number for number in whole[:TRIED] if _outcome(test, {**known, name: number}) not in met)
        if len(numbers) < MOST and (first := next(tried, None)) is not None:
            numbers.append(first)
    return sorted(set(numbers), reverse=whole.step < 0)


def unlike(
    vm: Interpreter, node: ast.For | ast.AsyncFor, name: str, before: int, after: int
) -> list[ast.AST]:
    """What is done by tests of the count that come out otherwise between two turns than in the first."""
    step = 1 if after > before else -1
    between = range(before, after, step)[:TRIED]
    found: list[ast.AST] = []
    for one in all_in(node) if len(between) > 1 else ():
        if isinstance(one, (ast.If, ast.IfExp, ast.BoolOp)):
            tests = [*_tests(one if isinstance(one, ast.BoolOp) else ast.If(one.test, [], []), name)]
            known = _constants(vm, tests)
            if any(len({_outcome(test, {**known, name: turn}) for turn in between}) > 1 for test in tests):
                found.append(one)
    return found


def _tests(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What is asked of the count in a loop, one question at a time."""
    for one in all_in(node):
        if isinstance(one, ast.Compare) and len(one.ops) == 1 and _mentions(one, name):
            yield one
        elif isinstance(one, (ast.If, ast.IfExp)):
            test = one.test.operand if isinstance(one.test, ast.UnaryOp) else one.test
            if isinstance(test, (ast.BinOp, ast.Name)) and _mentions(test, name):
                yield test
        elif isinstance(one, ast.BoolOp):
            yield from (
                part
                for part in one.values
                if isinstance(part, (ast.BinOp, ast.Name)) and _mentions(part, name)
            )


def _handed_on(node: ast.AST, name: str) -> bool:
    """Whether a call is given the count as it is, to ask it there."""
    calls = (one for one in all_in(node) if isinstance(one, ast.Call))
    return any(isinstance(arg, ast.Name) and arg.id == name for call in calls for arg in call.args)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in all_in(node))


def _constants(vm: Interpreter, tests: list[ast.expr]) -> dict[str, float]:
    """The plain numbers that these are about besides the count."""
    names = {one.id for test in tests for one in all_in(test) if isinstance(one, ast.Name)}
    held = ((each, vm.names.scope.names.get(each)) for each in names)
    return {
        each: one.value
        for each, one in held
        if isinstance(one, Const) and isinstance(one.value, (int, float))
    }


def _outcome(test: ast.expr, known: Mapping[str, float]) -> bool | None:
    """How a test comes out, if it is about such numbers alone."""
    if isinstance(test, ast.Compare):
        left, right = _number(test.left, known), _number(test.comparators[0], known)
        compare = COMPARE.get(type(test.ops[0]))
        return None if left is None or right is None or compare is None else bool(compare(left, right))
    number = _number(test, known)
    return None if number is None else bool(number)


def _number(node: ast.expr, known: Mapping[str, float]) -> float | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (int, float)) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    compute = COMPUTED.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if compute is None or not isinstance(node, ast.BinOp):
        return None
    left, right = _number(node.left, known), _number(node.right, known)
    try:
        return None if left is None or right is None else compute(left, right)
    except (ArithmeticError, ValueError):
        return None
