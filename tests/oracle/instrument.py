"""Prepares a program to be watched: it goes on after a failure, and updates by hand announce themselves."""

from __future__ import annotations

import ast
from typing import TypeVar

S = TypeVar("S", bound=ast.stmt)
GUARD = ast.parse("try:\n    pass\nexcept RuntimeError as failure__:\n    failed__(failure__)").body[0]


def instrumented(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [new for old in block for new in watched(old)])
    return ast.fix_missing_locations(tree)


def watched(statement: ast.stmt) -> list[ast.stmt]:
    announced = announcements(statement)
    if binds_nothing(statement):
        return [*announced, guarded(statement)]
    return [*announced, statement]


def binds_nothing(statement: ast.stmt) -> bool:
    """Whether the program can go on without it."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(t, (ast.Subscript, ast.Attribute)) for t in statement.targets)
    return isinstance(statement, (ast.Expr, ast.AugAssign))


def guarded(statement: ast.stmt) -> ast.stmt:
    assert isinstance(GUARD, ast.Try)
    handler = ast.ExceptHandler(
        type=GUARD.handlers[0].type, name="failure__", body=list(GUARD.handlers[0].body)
    )
    located = ast.copy_location(
        ast.Try(body=[statement], handlers=[handler], orelse=[], finalbody=[]), statement
    )
    call = ast.parse("failed__(failure__)").body[0]
    for node in ast.walk(call):
        relocate(node, statement)
    handler.body = [call]
    relocate(handler, statement)
    return located


def relocate(node: ast.AST, at: ast.stmt) -> None:
    ast.copy_location(node, at)


def announcements(statement: ast.stmt) -> list[ast.stmt]:
    """A hand-written update says whose gradient it uses."""
    name = updated(statement)
    if name is None:
        return []
    rebinds = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    call = ast.parse(f"update__({name}, {rebinds})").body[0]
    for node in ast.walk(call):
        relocate(node, statement)
    return [call]


def updated(statement: ast.stmt) -> str | None:
    """The tensor that is written with the help of its own `.grad`."""
    name = written_name(statement)
    reads = (
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(statement)
    )
    return name if name and any(reads) else None


def written_name(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.AugAssign):
        return plain(statement.target)
    if isinstance(statement, ast.Assign):
        return plain(statement.targets[0])
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
            return plain(function.value)
    return None


def plain(node: ast.expr) -> str | None:
    """`w` or `w.data`, by its name."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
