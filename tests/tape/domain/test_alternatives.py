"""Histories that differ by path."""

from __future__ import annotations

from gradfix.tape.domain.alternatives import phi
from gradfix.tape.domain.graph import Node


def test_a_history_on_paths_that_contradict_each_other_is_still_one() -> None:
    flag, other = frozenset({("flag", True)}), frozenset({("flag", False)})
    inner = phi([(other, Node("w", None, (), True)), (other, Node("x", None, (), False))])
    assert inner.requires is None
    assert phi([(flag, inner)]).parents == (inner,)
