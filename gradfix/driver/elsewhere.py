"""A driver plays not all that a project does with an object: who else may heal what it shows."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from gradfix.driver.given import Project
from gradfix.driver.recipe import Recipe
from gradfix.driver.targets import covers


def healer(recipe: Recipe, project: Project, tree: ast.Module, line: int) -> str:
    """Who may step what an object keeps where no optimizer sees it; nothing: nobody in the project does.

    An object that steps by itself is played whole. Of any other, the driver makes up who trains it.
    """
    if not recipe.roots or recipe.build is None:
        return ""
    name = recipe.target.name
    if not built(project, name):
        return f"nobody in the project builds {name}: whoever trains it"
    for kept in attributes(tree, line):
        reader = reading(project, kept)
        if reader:
            return f"{os.path.relpath(reader, project.root)}, which reads `.{kept}`,"
    return ""


def built(project: Project, name: str) -> bool:
    """Whether anybody calls a class, hands it over or inherits from it."""
    word = name.encode()
    for path, text in project.texts.items():
        read = project.of(path) if word in text else None
        if read is not None and any(one == name for one in used(read.tree)):
            return True
    return False


def used(node: ast.AST) -> Iterator[str]:
    """The names that are read in a text; `super(Net, self)` is no use of a class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "super":
            continue
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.Attribute):
            yield child.attr
        yield from used(child)


def attributes(tree: ast.Module, line: int) -> set[str]:
    """The attributes of an object that are set or filled in a line."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and covers(node, line):
            for one in ast.walk(node):
                kept = (
                    one.func.value
                    if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
                    else one
                )
                if isinstance(kept, ast.Attribute) and on_self(kept) and (kept is not one or stored(kept)):
                    found.add(kept.attr)
    return found


def on_self(node: ast.Attribute) -> bool:
    """Whether it is an attribute of the object itself."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def stored(node: ast.Attribute) -> bool:
    """Whether it is set."""
    return isinstance(node.ctx, ast.Store)


def reading(project: Project, kept: str) -> str:
    """A file that reads an attribute of an object from outside of it."""
    pattern = re.compile(rb"(?<!\bself)\.%s\b(?!\s*\()" % re.escape(kept.encode()))
    return next((path for path, text in project.texts.items() if pattern.search(text)), "")
