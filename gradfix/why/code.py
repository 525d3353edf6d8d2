"""What a file's `ast` says of a line: the function and the statement that it is in, names, calls, imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from gradfix.defects import Span

Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Scope: TypeAlias = "Definition | ast.Module"
MOST_TREES, MOST_SCOPES = 1024, 16_384
"""The files and functions of which an index is kept."""
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPOUND = (*LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
"""Statements that hold others."""


def span_of(node: ast.stmt | ast.expr) -> Span:
    """Where a node stands."""
    return Span(
        node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    )


def covers(node: ast.AST, line: int) -> bool:
    """Whether a node stands on a line, among others."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
    decorators = getattr(node, "decorator_list", ())
    return bool(min([first, *(each.lineno for each in decorators)]) <= line <= last)


@lru_cache(maxsize=MOST_TREES)
def functions(tree: ast.Module) -> tuple[Definition, ...]:
    """Every function of a file."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@lru_cache(maxsize=MOST_TREES)
def classes(tree: ast.Module) -> tuple[ast.ClassDef, ...]:
    """Every class of a file."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def scopes(tree: ast.Module) -> Iterator[Scope]:
    """The module and every function in it."""
    yield tree
    yield from functions(tree)


def scope_at(tree: ast.Module, line: int) -> Scope:
    """The innermost function that a line is in, else the module."""
    around = [each for each in functions(tree) if covers(each, line)]
    return max(around, key=lambda each: each.lineno, default=tree)


def function_at(tree: ast.Module, line: int) -> str:
    """The same by the name that a traceback gives it."""
    scope = scope_at(tree, line)
    return "<module>" if isinstance(scope, ast.Module) else scope.name


def class_at(tree: ast.Module, line: int) -> ast.ClassDef | None:
    """The innermost class that a line is in."""
    around = [each for each in classes(tree) if covers(each, line)]
    return max(around, key=lambda each: each.lineno, default=None)


@lru_cache(maxsize=MOST_SCOPES)
def statements(scope: ast.AST) -> tuple[ast.stmt, ...]:
    """The statements of a scope in the order of the text, without those of functions and classes in it."""
    return tuple(_statements(scope))


def _statements(scope: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


def statement_at(scope: Scope, line: int) -> ast.stmt | None:
    """The innermost statement of a scope that a line is in."""
    around = [each for each in statements(scope) if covers(each, line)]
    return max(around, key=lambda each: (each.lineno, each.col_offset), default=None)


def loops_at(scope: Scope, line: int) -> list[ast.stmt]:
    """The loops of a scope that a line is in, the outermost first."""
    return [each for each in statements(scope) if isinstance(each, LOOPS) and covers(each, line)]


def dotted(node: ast.AST) -> str:
    """A name or a chain of attributes as text; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def called(node: ast.AST | None) -> str:
    """The last part of what a call calls; "" for anything that isn't a call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def read(node: ast.AST) -> set[str]:
    """The names, and attributes of `self`, that an expression reads."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
            found.add(f"self.{each.attr}")
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id != "self":
            found.add(each.id)
    return found


def holder(node: ast.expr) -> str:
    """The name that holds what an expression is a part or a view of: `x` for `x[0].view(-1)`, `self.h`."""
    while True:
        text = dotted(node)
        if text.startswith("self."):
            return ".".join(text.split(".")[:2])
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        else:
            return ""


def targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement assigns to, tuples taken apart."""
    waiting: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        waiting = list(statement.targets)
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        waiting = [statement.target]
    elif isinstance(statement, ast.With | ast.AsyncWith):
        waiting = [item.optional_vars for item in statement.items if item.optional_vars]
    while waiting:
        target = waiting.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            waiting = [*target.elts, *waiting]
        else:
            yield target


def bound(statement: ast.stmt) -> set[str]:
    """The names and attributes of `self` that a statement binds, or into whose value it writes."""
    return {name for name in map(holder, targets(statement)) if name}


@lru_cache(maxsize=MOST_TREES)
def names_of_imports(tree: ast.Module) -> frozenset[str]:
    """The names that a file's imports bind."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    aliases = (alias for node in nodes for alias in node.names)
    return frozenset(alias.asname or alias.name.partition(".")[0] for alias in aliases)


def imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The modules that a file imports, with their leading dots; of `from a import b` also `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module, node.level
            yield from ((f"{module}.{alias.name}".lstrip("."), node.level) for alias in node.names)
