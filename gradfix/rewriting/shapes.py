"""What a piece of a tree looks like. libcst's own matchers take longer to import than most files to mend."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import libcst as cst

from gradfix.rewriting.names import walk


class Shape:
    """Nodes of some kinds, with parts that have shapes of their own; what isn't told may be anything."""

    def __init__(self, kind: type[cst.CSTNode], parts: dict[str, Any]) -> None:
        self.kind = kind
        self.parts = parts
        self.others: tuple[Shape, ...] = ()

    def __or__(self, other: Shape) -> Shape:
        either = Shape(self.kind, self.parts)
        either.others = (*self.others, other, *other.others)
        return either


def __getattr__(name: str) -> Any:
    """`shapes.Call(func=...)`: the parts by name, or in the order in which libcst's node takes them."""
    if name.startswith("_"):
        raise AttributeError(name)
    kind = getattr(cst, name)
    return lambda *given, **named: Shape(kind, {**dict(zip(order(kind), given, strict=False)), **named})


@cache
def order(kind: Any) -> tuple[str, ...]:
    """The parts of a node."""
    return tuple(field.name for field in fields(kind))


def matches(value: Any, shape: Any) -> bool:
    """Whether a node, a list of them or a plain value has a shape."""
    if isinstance(shape, Shape):
        own = isinstance(value, shape.kind) and all(
            matches(getattr(value, name), part) for name, part in shape.parts.items()
        )
        return own or any(matches(value, other) for other in shape.others)
    if isinstance(shape, list):
        return len(value) == len(shape) and all(map(matches, value, shape))
    return bool(value == shape)


def findall(node: cst.CSTNode, shape: Shape) -> list[cst.CSTNode]:
    """All of a shape, in the order of the text, the node itself among them."""
    return [one for one in walk(node) if matches(one, shape)]
