"""The text of what stands in for packages and for a GPU, for programs that need it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gradfix.source import Source, parse

SEARCH = Path(__file__).parent / "search"


def stand_ins(name: str, behind: str) -> Iterator[str]:
    """Classes that stand in for something, as text: so that what they call is called by who calls them."""
    yield "exec("
    yield '    """'
    path = SEARCH / f"{name}.py"
    found = parse(str(path), path.read_bytes())
    for node in found.tree.body if isinstance(found, Source) else ():
        if isinstance(node, ast.ClassDef):
            yield from (*ast.unparse(bare(node)).split("\n"), "")
    yield '"""'
    yield f")  # {behind}"


def bare(node: ast.ClassDef) -> ast.ClassDef:
    """A class without annotations and doc strings."""
    for one in ast.walk(node):
        if isinstance(one, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(one):
            one.body = one.body[1:] or [ast.Pass()]
        if isinstance(one, ast.FunctionDef):
            one.returns = None
        if isinstance(one, ast.arg):
            one.annotation = None
    return node
