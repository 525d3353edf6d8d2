"""The text of what lives: the syntax trees of classes and functions, and who is above a node."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from typing import Any

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class Text:
    """One file."""

    def __init__(self, path: str) -> None:
        lines = linecache.getlines(path)
        try:
            self.tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            self.tree = ast.parse("")
        self.above: dict[ast.AST, ast.AST] = {}
        self.starts: dict[int, list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.above[child] = node
            if isinstance(node, (*Function, ast.ClassDef, ast.Lambda)):
                first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
                for line in {first, node.lineno}:
                    self.starts.setdefault(line, []).append(node)

    def covering(self, line: int, kind: Any) -> list[Any]:
        """The nodes of a kind that a line is in, inner ones last."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, kind) and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]


@functools.cache
def text(path: str) -> Text:
    """The file, as the program finds it."""
    return Text(path)


def written(function: Any) -> Any:
    """Of what torch has compiled to a script, the function as it was written."""
    return getattr(function, "_torchdynamo_inline", function)


def node_of(function: Any) -> tuple[Text, Any] | None:
    """The definition of a function that lives; None: it has no text."""
    function = inspect.unwrap(getattr(written(function), "__func__", written(function)))
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    found = text(code.co_filename)
    for node in found.starts.get(code.co_firstlineno, ()):
        if isinstance(node, Function) and node.name == code.co_name:
            return found, node
    return None


def class_node(cls: type) -> tuple[Text, ast.ClassDef] | None:
    """The definition of a class."""
    try:
        path = inspect.getsourcefile(cls)
    except TypeError:
        return None
    if path is None:
        return None
    found = text(path)
    for node in ast.walk(found.tree):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            return found, node
    return None


def wanted(function: Any) -> list[str]:
    """The parameters that a call has to give."""
    gathered = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = parameters(function).items()
    return [name for name, one in found if one.kind not in gathered and one.default is one.empty]


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    """What a call may give, without what is bound; nothing, where that isn't known."""
    try:
        return dict(inspect.signature(written(function)).parameters)
    except (TypeError, ValueError):
        return {}
