"""Histories that differ by path."""

from __future__ import annotations

from gradfix.tape.domain.alternatives import phi
from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.in_graph import surely


def test_a_history_on_paths_that_contradict_each_other_is_still_one() -> None:
    flag, other = frozenset({("flag", True)}), frozenset({("flag", False)})
    inner = phi([(other, Node("w", None, (), True)), (other, Node("x", None, (), False))])
    assert inner.requires is None
    assert phi([(flag, inner)]).parents == (inner,)


def test_whether_joins_of_joins_are_in_a_graph_is_asked_of_each_once() -> None:
    node = Node("unknown", None, (), None)
    for way in range(200):  # asked on every way to it, this would never end
        node, below = Node("phi", None, (node, node), None), node
        node.guards = (frozenset({(way, True)}), frozenset({(way, False)}))
    assert not surely(node)
    below.requires = True
    assert surely(node)
