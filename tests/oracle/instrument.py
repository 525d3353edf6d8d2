"""Prepares a program to be watched: it goes on after a failure, and updates by hand announce themselves."""

from __future__ import annotations

import ast

PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
BLOCKS = ("body", "orelse", "finalbody")


def instrumented(source: str) -> ast.Module:
    tree = ast.parse(source)
    watch(tree, "grad" in source)
    return tree


def watch(node: ast.AST, updates: bool) -> None:
    """Replace every statement below a node with its watched form."""
    for name in BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            for statement in block:
                watch(statement, updates)
            setattr(node, name, [new for old in block for new in watched(old, updates)])


def watched(statement: ast.stmt, updates: bool) -> list[ast.stmt]:
    announced = announcements(statement) if updates else []
    if binds_nothing(statement):
        return [*announced, guarded(statement)]
    return [*announced, statement]


def binds_nothing(statement: ast.stmt) -> bool:
    """Whether the program can go on without it."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(t, (ast.Subscript, ast.Attribute)) for t in statement.targets)
    return isinstance(statement, (ast.Expr, ast.AugAssign))


def guarded(statement: ast.stmt) -> ast.stmt:
    where = {name: getattr(statement, name) for name in PLACE}
    told = ast.Call(
        ast.Name("failed__", ast.Load(), **where), [ast.Name("failure__", ast.Load(), **where)], [], **where
    )
    sort = ast.Name("RuntimeError", ast.Load(), **where)
    handler = ast.ExceptHandler(type=sort, name="failure__", body=[ast.Expr(told, **where)], **where)
    return ast.Try(body=[statement], handlers=[handler], orelse=[], finalbody=[], **where)


def announcements(statement: ast.stmt) -> list[ast.stmt]:
    """A hand-written update says whose gradient it uses."""
    name = updated(statement)
    if name is None:
        return []
    rebinds = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    call = ast.parse(f"update__({name}, {rebinds})").body[0]
    for node in ast.walk(call):
        ast.copy_location(node, statement)
    return [call]


def updated(statement: ast.stmt) -> str | None:
    """The tensor that is written with the help of its own `.grad`."""
    name = written_name(statement)
    if isinstance(statement, ast.Assign) and name and not reads_itself(statement, name):
        return None
    reads = (
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(statement)
    )
    return name if name and any(reads) else None


def reads_itself(statement: ast.Assign, name: str) -> bool:
    """Whether the new value is made of the old one: `w = w.grad` only calls the gradient by another name."""
    if not isinstance(statement.targets[0], ast.Name):
        return True
    nodes = list(ast.walk(statement.value))
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "grad"}
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in owners for node in nodes)


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
