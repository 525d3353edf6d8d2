"""Leaves that are written, and leaves that are none any more, where no frame says which line it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradfix.tape.effects.nodes import VIEWING
from gradfix.why.code import Scope, called, holder, scopes, statements
from gradfix.why.suspects import Agreement, Case, Suspect
from gradfix.why.writes import Write, writes

OF_A_LAYER = re.compile(r"\.(?:weight|bias)\b")
"""What torch's layers call their parameters."""
MARKED = re.compile(r"requires_grad=True|\.requires_grad_\((?:True)?\)|\bParameter\(")
COPIED = re.compile(r"\.data\b|\.detach\(|\.clone\(|\.grad\b|\.copy\(")


def leaf_writes(case: Case) -> Iterator[Suspect]:
    """Writes in place to parameters and to what is marked, as far as the text tells."""
    if case.spots:
        return
    for path, source in case.flow.sources.items():
        for scope in scopes(source.tree):
            for write in writes(scope):
                if (why := _of_a_leaf(case, scope, write)) and not case.unrecorded(scope, write.statement):
                    says = f"`{case.text(path, write.statement)}` writes {why} in place"
                    agrees = (Agreement(5, "torch names such a leaf, and this is one"),)
                    assumes = ("assuming that gradients are recorded where it runs",)
                    place = case.place(path, write.statement)
                    yield Suspect(path, place, says, agrees, assumes, case.said.message.then)


def _of_a_leaf(case: Case, scope: Scope, write: Write) -> str:
    """What of a leaf a write writes; "" where it writes none."""
    written = ast.unparse(_target(write))
    if COPIED.search(written):
        return ""
    if OF_A_LAYER.search(written):
        return "a layer's parameter"
    if "Parameter" in case.flow.built.get(write.name.rpartition(".")[2], ()):
        return "a parameter"
    viewed = _made(scope, write)
    text = ast.unparse(viewed) if viewed is not None else ""
    if not text or COPIED.search(text):
        return ""
    if MARKED.search(text):
        return "what requires grad by its making"
    chained = isinstance(viewed, ast.Attribute | ast.Subscript) or called(viewed) in VIEWING
    return "a view of a layer's parameter" if chained and OF_A_LAYER.search(text) else ""


def _made(scope: Scope, write: Write) -> ast.expr | None:
    """What the written name was bound to last before the write."""
    made: ast.expr | None = None
    for each in statements(scope):
        if isinstance(each, ast.Assign) and each.lineno < write.statement.lineno:
            whole = (holder(target) for target in each.targets if not isinstance(target, ast.Subscript))
            made = each.value if write.name in whole else made
    return made


def _target(write: Write) -> ast.expr:
    if isinstance(write.node, ast.AugAssign):
        return write.node.target
    if isinstance(write.node, ast.Assign):
        return write.node.targets[0]
    assert isinstance(write.node, ast.Call)  # the other forms of a write
    return write.node.func


def leafless_results(case: Case) -> Iterator[Suspect]:
    """Where what was marked as a leaf goes through one more operation: the result is none."""
    for path, source in case.flow.sources.items():
        for scope in scopes(source.tree):
            for statement in statements(scope):
                if not isinstance(statement, ast.Assign):
                    continue
                if not any(map(_computed_from_a_leaf, ast.walk(statement.value))):
                    continue
                names = {holder(target) for target in statement.targets}
                agrees = [
                    Agreement(4, "an operation behind `requires_grad` makes another tensor, and no leaf")
                ]
                if names & _optimised(scope):
                    agrees.append(Agreement(4, "an optimizer is given it"))
                yield Suspect(
                    path, case.place(path, statement),
                    f"`{case.text(path, statement)}` computes further from the leaf that it makes",
                    tuple(agrees), (), "make the value first, and mark it last",
                )  # fmt: skip


def _computed_from_a_leaf(node: ast.AST) -> bool:
    """Whether an expression is an operation on what was marked just there."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return called(node) not in ("requires_grad_", "retain_grad", "append") and _marked(node.func.value)
    return isinstance(node, ast.BinOp) and (_marked(node.left) or _marked(node.right))


def _marked(node: ast.expr) -> bool:
    if called(node) == "requires_grad_":
        return True
    words = node.keywords if isinstance(node, ast.Call) else []
    return (
        any(
            word.arg == "requires_grad" and isinstance(word.value, ast.Constant) and word.value.value is True
            for word in words
        )
        or called(node) == "Parameter"
    )


def _optimised(scope: Scope) -> set[str]:
    """The names that are handed to an optimizer in a scope."""
    return {
        name.id
        for statement in statements(scope)
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
        and ("optim" in ast.unparse(call.func).lower() or called(call)[:1].isupper())
        for argument in call.args[:1]
        for name in ast.walk(argument)
        if isinstance(name, ast.Name)
    }
