"""The leaves that a program has, and what was done to them as leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.paths import contradicts
from gradfix.tape.domain.values import Value

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.domain.moments import Moment
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.optimizers import Optimizers


class Leaves:
    """All leaves of one entry, those of the module itself among them."""

    def __init__(self, graph: Graph, optimizers: Optimizers, before: Leaves | None) -> None:
        self.graph = graph
        self.here = graph.here
        self.timeline = graph.timeline
        self.optimizers = optimizers
        self.every_leaf: list[Tensor] = [*before.every_leaf] if before else []
        self.froze: bool = before is not None and before.froze
        """Whether parameters were told to require no grad."""
        self.hooked: bool = before is not None and before.hooked
        """Whether somebody hears of gradients as they arrive."""
        self.moved: bool = before is not None and before.moved
        """Whether something was moved to a device."""

    def may_be_filled(self, leaf: Tensor, after: Moment | None = None) -> bool:
        """Whether code that wasn't followed may have brought a gradient to a leaf since some moment.

        It may if it had the leaf, or a graph that leads there. What a skipped call of known code made of
        the leaves that it names may be in the root of any backward.
        """
        since = after.number if after is not None else self.timeline.first - 1
        if self.optimizers.touches is None:
            return True
        reach, memory = self.optimizers.touches.reach, frozenset({id(leaf.storage)})
        given = [
            moment.what
            for moment in self.timeline.moments
            if moment.deed == "anything"
            and (moment.skipped or (moment.number > since and reach.stranger(moment.what[0])))
            and not contradicts(moment.path, self.here.path)
        ]
        if any(reach.holds(what, memory) for what in given):
            return True
        values = (value for what in given for value in what if isinstance(value, Value))
        nodes = [node for value in values for node in self.graph.given(value)]
        return any(node.leaf is leaf for node in upstream(nodes, _recorded))


def _recorded(node: Node) -> tuple[Node, ...]:
    """What a backward from a node may go on to."""
    return node.parents if node.requires is not False else ()


def is_added(leaf: Tensor) -> bool:
    """Whether some backward reached a leaf, or may have."""
    return leaf.slot is not None and any(isinstance(event, Add) for event in leaf.slot.events)
