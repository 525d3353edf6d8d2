"""Objects of own classes whose `forward` returns nothing of what they hold: it is read, and not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradfix.tape.domain.definitions import Class, Function, Instance
from gradfix.tape.domain.values import Unknown, Value
from gradfix.tape.interpreter.inside import all_in

MADE_OF = 3
"""Through how many values a class is looked for that something was made of."""


def passes_by(value: Value) -> bool:
    """Whether a value is such an object, or isn't known and was made of such: then no gradient has to come to
    it by what it returns."""
    classes = list(_classes(value, MADE_OF))
    return bool(classes) and all(map(_returns_others, classes))


def _classes(value: Value, deep: int) -> Iterator[Class]:
    if isinstance(value, Class):
        yield value
    elif isinstance(value, Instance):
        yield value.cls
    elif isinstance(value, Unknown) and deep:
        for held in value.holds:
            yield from _classes(held, deep - 1)


def _returns_others(cls: Class) -> bool:
    """Whether nothing that `forward` returns was made of the object, as its statements read."""
    function = cls.lookup("forward")
    node = function.code.node if isinstance(function, Function) else None
    if not isinstance(node, ast.FunctionDef) or not node.args.args:
        return False
    inside = all_in(node)[1:]
    if any(isinstance(one, (ast.FunctionDef, ast.Lambda, ast.Yield, ast.YieldFrom)) for one in inside):
        return False
    own, before = {node.args.args[0].arg}, 0
    while before < len(own):
        before = len(own)
        for one in inside:
            source, taken = _flow(one)
            if own & _names(source):
                own |= _names(taken)
    returned = [one.value for one in inside if isinstance(one, ast.Return)]
    return bool(returned) and not any(own & _names([one]) for one in returned if one is not None)


def _flow(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """From what to what a statement or a call may carry something."""
    if isinstance(node, ast.Assign):
        return [node.value], [*node.targets]
    if isinstance(node, (ast.AugAssign, ast.NamedExpr)):
        return [node.value], [node.target]
    if isinstance(node, ast.AnnAssign):
        return ([node.value] if node.value is not None else []), [node.target]
    if isinstance(node, (ast.For, ast.comprehension)):
        return [node.iter], [node.target]
    if isinstance(node, ast.withitem):
        return [node.context_expr], ([node.optional_vars] if node.optional_vars is not None else [])
    if isinstance(node, ast.Expr):  # for what it does to what it names
        return [node.value], [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        return [*node.args, *node.keywords], [node.func.value]
    return [], []


def _names(nodes: list[ast.AST] | list[ast.expr]) -> set[str]:
    return {one.id for node in nodes for one in all_in(node) if isinstance(one, ast.Name)}
