"""Cuts that are asked for: what stands alone under a test is wanted by whoever has it come out so."""

from __future__ import annotations

import ast

from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.inside import all_in

CUTTING = having("detaches") | having("converts") | {"data", "detach_"}


def asked_for(module: ast.Module, line: int) -> bool:
    """Whether the cut on a line is all that a test decides on."""
    return any(
        one.lineno <= line <= (one.end_lineno or one.lineno)
        for test in all_in(module)
        if isinstance(test, (ast.If, ast.IfExp)) and not isinstance(test.test, ast.Constant)
        for one in (_alone(test) if isinstance(test, ast.If) else _one_way(test))
    )


def _alone(test: ast.If) -> list[ast.stmt]:
    """The one statement under a test, and the one of its other arm."""
    arms = (test.body, test.orelse)
    return [arm[0] for arm in arms if arm] if all(len(arm) < 2 for arm in arms) else []


def _one_way(test: ast.IfExp) -> list[ast.expr]:
    """The arm of a conditional expression that cuts, where the other one doesn't."""
    cuts = [arm for arm in (test.body, test.orelse) if _cuts(arm)]
    return cuts if len(cuts) == 1 else []


def _cuts(arm: ast.expr) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in CUTTING for one in all_in(arm))
