"""Which leaves a node surely leads to, kept with it: a graph that is walked often isn't walked whole."""

from __future__ import annotations

from gradfix.tape.domain.events import surely
from gradfix.tape.domain.graph import Node

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
