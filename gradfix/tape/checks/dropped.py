"""What is made of a gradient and thrown away: a change that no step ever sees."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects import Role
from gradfix.defects.records import EditDropped
from gradfix.tape.domain.graph import upstream
from gradfix.tape.effects import table
from gradfix.tape.effects.operations import where

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import Dropped

TRUTHS = where("gives", "truth")
NO_RULE = "what is made of a gradient here is dropped; no rule is about that"


def dropped(vm: Interpreter, told: Dropped) -> None:
    """A gradient that is told to change, and isn't written: what was made of it is dropped."""
    result, node = told
    if (
        result.node.writes
        or result.storage.writes
        or not any(one.op == "grad" for one in upstream(result.node.parents))
    ):
        return
    owner = (result.node.parents[0].facts or {}).get("of")
    if owner is None or not _changes(result, node) or not node.col_offset:
        vm.reports.silence(node, NO_RULE)
        return
    place = vm.here.at(node)
    vm.reports.report(
        "gradient_edit_dropped",
        place,
        [(place, Role.DROPPED)],
        EditDropped(method=result.node.op),
        lean=owner.lean | owner.node.lean,
        when=vm.here.path - vm.here.assumed,
    )


def _changes(result: Tensor, node: ast.expr) -> bool:
    """Whether a method was called of which there is one that does the same in place: not a view or a copy."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)) or result.view:
        return False
    if any(keyword.arg in (None, "out") for keyword in node.keywords):
        return False
    called, methods = node.func.attr, table.names("method")
    return called == result.node.op and f"{called}_" in methods and called not in TRUTHS
