"""Which leaves a node leads to: surely, and kept with it, as a graph that is walked often isn't walked
whole; or on the way to those that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.in_graph import surely

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node, Tensor
    from gradfix.tape.machine.histories import Graph

MANY, FEW = 64, 16
"""From how many nodes on the leaves are kept with each, and how many of them at most."""


def remember(root: Node, stamp: object) -> None:
    """Keep with each node which leaves it leads to, where it surely does and nothing is wrong there."""
    stack = [(root, False)]
    opened: set[int] = set()
    while stack:
        node, done = stack.pop()
        if done:
            node.reach = _reached_by(node, stamp)
        elif id(node) not in opened and (node.reach is None or node.reach[0] != stamp):
            opened.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent in node.parents if node.leaf is None)


def _reached_by(node: Node, stamp: object) -> tuple[object, tuple[Node, ...]] | None:
    """The leaves below a node whose parents have theirs, if there is nothing else to be met."""
    if node.requires is not True or node.may or node.guards is not None or node.spoiled or node.freed:
        return None
    if node.leaf is not None:
        return stamp, (node,)
    found: dict[int, Node] = {}
    for parent in node.parents:
        if parent.requires is not False:
            if parent.reach is None or parent.reach[0] != stamp or not surely(parent):
                return None
            found.update((id(leaf), leaf) for leaf in parent.reach[1])
    return (stamp, tuple(found.values())) if len(found) <= FEW else None


def leading(graph: Graph, root: Node, only: list[Tensor], perhaps: bool = False) -> set[int]:
    """The nodes on the way from a root to the tensors that gradients are asked for, or `perhaps` on one."""
    targets = {id(graph.history(tensor)) for tensor in only}
    leaves = {id(tensor) for tensor in only if tensor.leaf}
    leading: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    opened: set[int] = set()
    while stack:
        node, done = stack.pop()
        if done:
            if perhaps and node.facts and "value" in node.facts and node.requires is not False:
                leading.add(id(node))  # what isn't known may lead to them
            if (
                node.requires is not False
                and (perhaps or not node.may)
                and any(
                    id(parent) in leading
                    or id(parent) in targets
                    or (parent.requires is not False and id(parent.leaf) in leaves)
                    for parent in node.parents
                )
            ):
                leading.add(id(node))
        elif id(node) not in opened:
            opened.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent in node.parents if node.requires is not False)
    return leading | {id(tensor.node) for tensor in only if tensor.leaf}
