"""Cuts that are asked for: what stands alone under a test is wanted by whoever has it come out so."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.inside import all_in

CUTTING = having("detaches") | having("converts") | {"data", "detach_"}


def asked_for(module: ast.Module, line: int) -> bool:
    """Whether the cut on a line is all that a test decides on."""
    return any(
        one.lineno <= line <= (one.end_lineno or one.lineno)
        for test in all_in(module)
        if isinstance(test, (ast.If, ast.IfExp)) and not isinstance(test.test, ast.Constant)
        for one in _one_way(*_arms(test))
    )


def _arms(test: ast.If | ast.IfExp) -> Sequence[ast.stmt | ast.expr]:
    """What stands on the two ways of a test, where that is one simple statement or expression each."""
    if isinstance(test, ast.IfExp):
        return test.body, test.orelse
    few = len(test.body) < 2 and len(test.orelse) < 2
    both = [*test.body, *test.orelse]
    passes = bool(test.orelse) or isinstance(test.test, ast.Name) or not _gives_anew(test.body[0])
    return both if few and passes and not any(hasattr(one, "body") for one in both) else []


def _gives_anew(statement: ast.stmt) -> bool:
    """Whether a statement binds what it doesn't take: left out, it leaves nothing uncut in its place."""
    if not isinstance(statement, ast.Assign):
        return False
    taken = {
        ast.unparse(one) for one in all_in(statement.value) if isinstance(one, (ast.Name, ast.Attribute))
    }
    return taken.isdisjoint(map(ast.unparse, statement.targets))


def _one_way(*arms: ast.stmt | ast.expr) -> list[ast.stmt | ast.expr]:
    """The arm that cuts, where the other one doesn't."""
    cuts = [arm for arm in arms if _cuts(arm)]
    return cuts if len(cuts) == 1 else []


def _cuts(arm: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in CUTTING for one in all_in(arm))
