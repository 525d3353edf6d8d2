"""What is tried for its own sake: a statement or two, of which a handler takes whatever torch says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.defects import Span

BROAD = frozenset({"Exception", "BaseException", "RuntimeError"})
"""The exceptions that what torch raises is one of."""
FEW = 2
"""How many statements are tried at most where somebody counts on their failing."""


class Handled:
    """Where such statements stand in each file, once somebody asks."""

    def __init__(self) -> None:
        self.trees: dict[str, ast.AST] = {}
        self.found: dict[str, list[Span]] = {}

    def within(self, path: str) -> list[Span]:
        """Those of one file that was read."""
        if path not in self.found:
            tree = self.trees.get(path)
            self.found[path] = handled(tree) if tree is not None else []
        return self.found[path]


def handled(tree: ast.AST) -> list[Span]:
    """Where such statements stand."""
    tries = [one for one in ast.walk(tree) if isinstance(one, ast.Try) and len(one.body) <= FEW]
    return [
        span_of(inner)
        for one in tries
        if any(map(_takes_all, one.handlers))
        for inner in one.body
        if _plain(inner)
    ]


def _takes_all(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes what torch raises, and raises nothing itself."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in kinds)
    return broad and not any(isinstance(one, ast.Raise) for one in ast.walk(handler))


def _plain(statement: ast.stmt) -> bool:
    return not hasattr(statement, "body")
