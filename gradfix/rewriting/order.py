"""What touches leaves between two events, as the statements of the code stand to it."""

from __future__ import annotations

from functools import reduce
from operator import or_

import libcst as cst

from gradfix.defects import Defect, Span, Touch, Touched, TouchKind
from gradfix.defects.ordered import EarlyClear, EarlyStep, Ordered
from gradfix.rewriting import shapes as m
from gradfix.rewriting.statements import Anchor, between
from gradfix.tree import Tree

VALUES: frozenset[TouchKind] = frozenset({"reads", "writes"})


CLIPS = ("clip_grad_norm_", "clip_grad_value_", "unscale_")
CHANGES = m.Attribute(attr=m.Name("grad")) | m.Call(func=m.Attribute(attr=reduce(or_, map(m.Name, CLIPS))))
"""What is done to gradients between a backward and its step."""
GRADIENT = m.Attribute(attr=m.Name("grad"))
CLEARS = m.Assign(targets=[m.AssignTarget(GRADIENT)], value=m.Name("None")) | m.Call(
    func=m.Attribute(value=GRADIENT, attr=m.Name("zero_"))
)
"""What is done to them behind it."""


class Order:
    """The touches of a defect's leaves, by the statements that they happen under."""

    def __init__(self, tree: Tree, touches: Touched) -> None:
        self.tree = tree
        self.known = touches is not None
        self.touches = touches or ()

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


def order_of(tree: Tree, defect: Defect) -> Order:
    """What touches the leaves in question."""
    return Order(tree, defect.told(Ordered).between)


def beside_of(tree: Tree, defect: Defect) -> Order:
    """What touches the gradients of all other optimizers."""
    return Order(tree, defect.told(EarlyStep).beside)


def filled_of(tree: Tree, defect: Defect) -> Order:
    """All that ever fills the gradients that were cleared too early."""
    return Order(tree, defect.told(EarlyClear).filled)


def within(inner: Span, outer: Span) -> bool:
    """Whether a place lies in another."""
    begins = (outer.line, outer.column) <= (inner.line, inner.column)
    return begins and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def calls_of(node: cst.CSTNode, name: str) -> list[cst.Call]:
    """The calls of a method below a node."""
    found = m.findall(node, m.Call(func=m.Attribute(attr=m.Name(name))))
    return [call for call in found if isinstance(call, cst.Call)]


def last_change(tree: Tree, backward: Anchor) -> Anchor:
    """The last of the statements behind a backward that change its gradients before a step is to use them."""
    last = backward
    for place in between(tree, backward, None):
        if not m.findall(place, CHANGES) or m.findall(place, CLEARS):
            break
        last = place
    return last


CLOSURE = "take the step out of here: it is given a closure, which runs the backward itself"


def takes_closure(tree: Tree, step: cst.CSTNode, optimizer: str) -> bool:
    """Whether a step is given what computes the loss and runs its backward; a scaler's gets the optimizer."""
    call = step.value if isinstance(step, cst.Expr) else step
    return isinstance(call, cst.Call) and any(tree.code(arg.value) != optimizer for arg in call.args)


def stands_alone(place: Anchor, call: cst.Call) -> bool:
    """Whether a statement is nothing but a call."""
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    return isinstance(small, cst.Expr) and small.value is call
