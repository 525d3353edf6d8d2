"""What touches leaves between two events, as the statements of the code stand to it."""

from __future__ import annotations

import libcst as cst
from libcst import matchers as m

from gradfix.defects import Defect, Span, Touch, TouchKind
from gradfix.rewriting.statements import Anchor
from gradfix.tree import Tree

VALUES: frozenset[TouchKind] = frozenset({"reads", "writes"})


class Order:
    """The touches of a defect's leaves, by the statements that they happen under."""

    def __init__(self, tree: Tree, touches: object) -> None:
        self.tree = tree
        self.known = isinstance(touches, tuple)
        self.touches = (
            [one for one in touches if isinstance(one, Touch)] if isinstance(touches, tuple) else []
        )

    def under(self, place: Anchor) -> list[Touch]:
        """What happens under a statement."""
        outer = self.tree.span(place)
        return [touch for touch in self.touches if touch.span is not None and within(touch.span, outer)]

    def kinds(self, place: Anchor) -> set[TouchKind]:
        """How a statement touches the leaves."""
        return {touch.kind for touch in self.under(place)}

    def elsewhere(self) -> list[Touch]:
        """What happens outside of the function that the events are in."""
        return [touch for touch in self.touches if touch.span is None]


def order_of(tree: Tree, defect: Defect, fact: str = "between") -> Order:
    return Order(tree, defect.facts.get(fact))


def within(inner: Span, outer: Span) -> bool:
    """Whether a place lies in another."""
    begins = (outer.line, outer.column) <= (inner.line, inner.column)
    return begins and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def calls_of(node: cst.CSTNode, name: str) -> list[cst.Call]:
    """The calls of a method below a node."""
    found = m.findall(node, m.Call(func=m.Attribute(attr=m.Name(name))))
    return [call for call in found if isinstance(call, cst.Call)]


def stands_alone(place: Anchor, call: cst.Call) -> bool:
    """Whether a statement is nothing but a call."""
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    return isinstance(small, cst.Expr) and small.value is call
