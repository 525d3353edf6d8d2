"""Whether a node is in a graph: for sure, on some paths, on this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.paths import ALWAYS, contradicts, meet, narrowest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Truth


def surely(node: Node) -> bool:
    """Whether a node is in a graph: for sure, or on one of the paths that it joins, directly or not."""
    return any(
        one.requires is True or (not one.guards and any(on_path(one, guard) for guard in one.branch))
        for one in upstream([node], _joined)
    )


def _joined(node: Node) -> tuple[Node, ...]:
    return node.parents if node.requires is None and node.guards is not None else ()


def live_arms(node: Node, path: Path) -> list[Path]:
    """The paths on which a node is in a graph for sure: where a branch behind it decides that, some of it."""
    if node.requires is None and node.guards is None and node.branch:
        arms = [both for guard in node.branch if (both := meet(path, guard)) is not None]
        return [arm for arm in arms if on_path(node, arm)]
    return [path] if surely(node) else []


FAR = 40
"""How many nodes that may be in a graph are looked through for the branch that decides it."""


def on_path(node: Node, path: Path, known: dict[int, Truth] | None = None) -> Truth:
    """Whether a node is in a graph on a path, as far as what it was made from says so."""
    if node.requires is not None or node.may or node.cut_place is not None or not node.parents:
        return node.requires
    known = {} if known is None else known
    if id(node) not in known and len(known) < FAR:
        known[id(node)] = None
        above: Sequence[Node] = node.parents
        if node.guards:
            both = zip(above, node.guards, strict=True)
            above = [parent for parent, guard in both if not contradicts(guard, path)]
        facts = {on_path(one, path, known) if one.requires is None else one.requires for one in above}
        if len(facts) == 1:
            known[id(node)] = facts.pop()
        elif node.guards is None and True in facts:
            known[id(node)] = True
    return known.get(id(node))


def partings(node: Node) -> tuple[Path, ...]:
    """The paths on which a node is in a graph or not, where a join behind it decides that."""
    return () if node.requires is not None else node.guards or node.branch


def arms(node: Node) -> tuple[Path, ...]:
    """The same, each as far as joins of joins tell it from others, where these are not too many."""
    found: list[Path] = []
    stack = [(node, ALWAYS)]
    while stack:
        one, path = stack.pop()
        if one.requires is True or not one.guards:
            found.append(path)
        else:
            ways = zip(reversed(one.parents), reversed(one.guards), strict=True)
            met = [(parent, meet(path, guard)) for parent, guard in ways]
            stack.extend((parent, narrowest(both)) for parent, both in met if both is not None)
        if len(found) + len(stack) > FAR:
            return partings(node)
    return tuple(found) if node.guards else partings(node)
