"""Cuts that are asked for: what stands alone under a flag is wanted by whoever sets the flag."""

from __future__ import annotations

import ast

from gradfix.tape.interpreter.inside import all_in


def asked_for(module: ast.Module, line: int) -> bool:
    """Whether the statement on a line is all that a plain name switches on."""
    tests = (one for one in all_in(module) if isinstance(one, ast.If) and isinstance(one.test, ast.Name))
    alone = (one.body[0] for one in tests if len(one.body) == 1 and not one.orelse)
    return any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in alone)
