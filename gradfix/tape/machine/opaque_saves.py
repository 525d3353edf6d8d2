"""What a module whose class isn't known has kept, as a later backward comes to it: whether it does, and
whether it may be one that keeps nothing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.values import Seq, Unknown
from gradfix.tape.machine.cuts import SUMS

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Node

FAR, DEEP = 2000, 6
"""Through how many operations a way to a module is looked for, and through how many values."""


def is_between(node: Node, root: Node) -> bool:
    """Whether an unknown module stands between others that learn, or may: what only adds something to what it
    is given is one of those, a network that is trained against another one is the first or the last."""
    before = list(islice(upstream(_inputs(node)), FAR))
    below = list(islice(upstream([root], lambda one: () if one is node else one.parents), FAR))
    if len(before) == FAR or len(below) == FAR:
        return True
    leading = {id(node)}
    for one in sorted(below, key=lambda one: one.born):
        if any(id(parent) in leading for parent in one.parents):
            leading.add(id(one))
    later = [one for one in below if id(one) in leading and one is not node]
    behind = any(one.op == "module" or any(map(_learns, one.parents)) for one in later)
    return behind and any(map(_learns, before))


def is_meant(root: Node, node: Node) -> bool:
    """Whether a backward comes to a node, as what isn't known on the way there was given nothing else that
    can have a graph (convention C)."""
    stack, seen = [root], set[int]()
    while stack and len(seen) < FAR:
        one = stack.pop()
        if one is node:
            return True
        if id(one) in seen or one.guards is not None:
            continue
        seen.add(id(one))
        stack.extend(_followed(one))
    return False


def _followed(node: Node) -> list[Node]:
    """What a backward comes to behind a node: all terms of a sum, and of other things what surely has a
    graph, or the only one that can have brought it."""
    live = [parent for parent in node.parents if parent.requires is not False]
    if node.may:
        return live if len(live) == 1 and _alone(node) else []
    if node.op in SUMS or (len(live) == 1 and node.op != "module"):
        return live
    return [parent for parent in live if parent.requires is True]


def _alone(node: Node) -> bool:
    """Whether of all that something unknown was made of only what has a history can have a graph."""
    facts = node.facts or {}
    if "past" in facts:
        return False
    value = facts.get("value")
    return value is None or _made_of_these(value)


def _made_of_these(value: Unknown, deep: int = DEEP) -> bool:
    """Whether all has a history, or none to have, that something unknown was made of, and that in turn."""
    if not value.part or not deep:
        return False
    held = [one for each in value.holds for one in (each.items if isinstance(each, Seq) else (each,))]
    return all(
        one.made is not None
        or one.tensor is not None
        or one.requires is not None
        or _made_of_these(one, deep - 1)
        for one in held
        if isinstance(one, Unknown)
    )


def _inputs(node: Node) -> list[Node]:
    return [one for one in node.parents if not _learns(one)]


def _learns(node: Node) -> bool:
    """Whether a node is a parameter."""
    return node.leaf is not None and node.leaf.parameter
