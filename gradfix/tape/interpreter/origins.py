"""Which call made a leaf, where it stands inside the expression that made a result of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.values import Place
    from gradfix.tape.machine.reports import Reports


def factory_inside(reports: Reports, result: Tensor) -> Span | None:
    """The call that makes the leaf, where a result is made of one in one expression."""
    factory = _factory(result.node)
    return reports.span(factory) if factory is not None and _inside(factory, result.node.place) else None


def _factory(node: Node) -> Place:
    """The one call at the start of a chain of operations."""
    while len(parents := [parent for parent in node.parents if parent.requires is True]) == 1:
        node = parents[0]
    return node.place if node.leaf is not None else None


def _inside(inner: object, outer: object) -> bool:
    if not isinstance(inner, ast.AST) or not isinstance(outer, ast.AST):
        return False
    return any(node is inner for node in ast.walk(outer))
