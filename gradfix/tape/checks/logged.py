"""Where a converted result is also used as a plain number: there the conversion has to stay."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.tape.domain.values import External
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.interpreter.names import Names


def note_conversions(names: Names) -> None:
    """Note conversions, with the later uses of the name that took the number."""
    if not names.machine.severed.conversions:
        return
    parents = {
        id(child): node for node in ast.walk(names.program.tree) for child in ast.iter_child_nodes(node)
    }
    cuts = {span_of(node): node for node in all_in(names.program.tree) if isinstance(node, ast.Call)}
    for draft in names.machine.severed.conversions:
        node: ast.AST | None = cuts.get(draft.culprit)
        while isinstance(node, ast.expr) and _stays_number(parents.get(id(node)), node):
            node = parents.get(id(node))
        uses: tuple[Span, ...] = ()
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            uses = _logged(names, node.targets[0].id, node, parents)
        names.reports.note(draft, replace(draft.facts, logged=uses))


def _stays_number(around: ast.AST | None, number: ast.expr) -> bool:
    """Whether what is made of a number is one too; beside something that may be a tensor it needn't be."""
    if isinstance(around, ast.BinOp):
        other = around.right if around.left is number else around.left
        return isinstance(other, ast.Constant)
    return around is not None


def _logged(names: Names, name: str, made: ast.AST, parents: dict[int, ast.AST]) -> tuple[Span, ...]:
    """The later loads of a name that hand it to something which isn't torch's."""
    scope: ast.AST = made
    while not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        scope = parents[id(scope)]
    found = []
    for node in all_in(scope):
        if (
            isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Load)
            and node.lineno > made.lineno  # type: ignore[attr-defined]
        ):
            user = parents[id(node)]
            if isinstance(user, ast.AugAssign) or (
                isinstance(user, ast.Call)
                and node in user.args
                and not _of_torch(names, user.func)
                and not _takes_tensors(names, user, user.args.index(node))
            ):
                found.append(span_of(node))
    return tuple(sorted(found))


def _takes_tensors(names: Names, call: ast.Call, place: int) -> bool:
    """Whether a function of the file asks what it is given here for more than a number has."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    for function in ast.walk(names.program.tree):
        if isinstance(function, ast.FunctionDef) and function.name == name:
            given = [each.arg for each in function.args.args][isinstance(call.func, ast.Attribute) :]
            asked = [
                node.value.id
                for node in ast.walk(function)
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            ]
            if place < len(given) and given[place] in asked:
                return True
    return False


def _of_torch(names: Names, func: ast.expr) -> bool:
    while isinstance(func, ast.Attribute):
        func = func.value
    if not isinstance(func, ast.Name):
        return False
    value = names.load(func.id)
    return isinstance(value, External) and value.path.startswith("torch")
