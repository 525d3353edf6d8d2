"""What stands inside of a piece of code: `ast.walk` without operators and contexts, in half of its time."""

from __future__ import annotations

import ast
from collections.abc import Container

LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "kind", "type_comment"})
"""Fields in which nothing stands that anybody looks for."""


FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind is not ast.Constant
}
"""The fields of each kind of node that can hold others."""


def all_in(node: ast.AST) -> list[ast.AST]:
    """A node and all that stand in it, the outer ones first."""
    found = [node]
    for one in found:
        for name in FIELDS.get(type(one), ()):
            held = getattr(one, name, None)
            if isinstance(held, ast.AST):
                found.append(held)
            elif type(held) is list:
                found.extend([each for each in held if isinstance(each, ast.AST)])
    return found


def open_ended(kwargs: Container[str], node: ast.AST) -> bool:
    """Whether a call may have arguments that aren't seen: by a star, or by two that aren't known."""
    starred = isinstance(node, ast.Call) and any(isinstance(arg, ast.Starred) for arg in node.args)
    return starred or "**" in kwargs
