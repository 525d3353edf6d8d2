"""The text of what stands in for packages and for a GPU, for programs that need it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gradfix.driver.recipe import ASKED, Recipe
from gradfix.source import Source, parse

MODE = "from torch.overrides import TorchFunctionMode"
OF_ABSENT = ("import sys", "from unittest.mock import MagicMock", "from torch import nn")
SEARCH = Path(__file__).parent / "search"


def surrounded(recipe: Recipe, own: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The lines that import what is driven, with all that stands in for something; what these import."""
    needed: tuple[str, ...] = ()
    if recipe.at_home:
        behind = "there is no GPU here: what would go to one stays"
        own, needed = [*stand_ins("athome", behind), "AtHome().__enter__()", "", *own], (MODE,)
    if recipe.stood:
        lines = [f'sys.modules["{name}"] = Absent(name="{name}")  # not installed' for name in recipe.stood]
        own = [*lines, "", *own]
    if recipe.framed:
        names = ", ".join(f'"{name}"' for name in ASKED)
        name = recipe.target.name
        own = [*own, "", f"for name in ({names}):"]
        own += [f"    setattr({name}, name, vars(Framework)[name])  # it has no trainer"]
    if recipe.stood or recipe.framed:
        own, needed = [*stand_ins("absent", "for what is not there"), *own], (*needed, *OF_ABSENT)
    return own, needed


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
