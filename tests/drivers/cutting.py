"""Cuts a script's driver off: what is left are imports, classes, functions, and what those need."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
DEFINED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
STAND_INS = "sys.modules"
"""What a fixture writes to, to stand in for a framework that isn't installed."""


def library(text: str) -> str:
    """The text without its driver; nothing, where it defines nothing."""
    tree = ast.parse(text)
    if not any(isinstance(node, DEFINED) for node in tree.body):
        return ""
    kept = closed(tree)
    lines = text.splitlines(keepends=True)
    return "".join(block(node, lines, kept) for node in tree.body if node in kept)


def closed(tree: ast.Module) -> set[ast.stmt]:
    """The definitions of a module, the statements that stand frameworks in, and all that these need."""
    stands = standing_in(tree)
    kept = {node for node in tree.body if isinstance(node, DEFINITIONS) or node in stands}
    while True:
        wanted = {name for node in kept for name in read(node)}
        more = {
            node
            for node in tree.body
            if node not in kept and isinstance(node, ASSIGNMENTS) and wanted & set(bound(node))
        }
        if not more:
            return kept
        kept |= more


def standing_in(tree: ast.Module) -> set[ast.stmt]:
    """The assignments that put a stand-in among the modules, and those that fill it."""
    found = {node for node in tree.body if isinstance(node, ast.Assign) and STAND_INS in targets(node)}
    names = {name for node in found for name in bound(node)}
    filled = {
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and any(targets(node).startswith(f"{name}.") for name in names)
    }
    return found | filled


def targets(node: ast.Assign) -> str:
    return ", ".join(map(ast.unparse, node.targets))


def bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds at the top of a module, or whose content it changes."""
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        yield from (each.id for each in ast.walk(node.target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.Assign):
        walks = (each for target in node.targets for each in ast.walk(target))
        yield from (each.id for each in walks if isinstance(each, ast.Name) and each.id != "sys")


def read(node: ast.stmt) -> Iterator[str]:
    """Names that a statement may ask the module for."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not hasattr(builtins, each.id):
            yield each.id


def block(node: ast.stmt, lines: list[str], kept: set[ast.stmt]) -> str:
    """The lines of a statement with its decorators, and two empty ones around what is defined."""
    assert node.end_lineno is not None
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    text = "".join(lines[first - 1 : node.end_lineno])
    text = text if text.endswith("\n") else text + "\n"
    return f"\n\n{text}" if isinstance(node, DEFINED) else text
