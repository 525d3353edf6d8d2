"""What is one of many values has one history, however many ways lead to it."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.moments import Timeline
from gradfix.tape.domain.trail import Trail
from gradfix.tape.domain.values import Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.machine.grad_mode import GradMode
from gradfix.tape.machine.here import Here
from gradfix.tape.machine.histories import Graph
from gradfix.tape.machine.reports import Findings, Reports

WHY = Why(What.ALTERNATIVES, "one of several")


def graph() -> Graph:
    here = Here("script.py", Trail())
    reports = Reports(Findings("script.py", [b"pass"]), here)
    return Graph(reports, here.trail, Timeline(), GradMode(here))


def doubled(one: Graph, height: int) -> Unknown:
    """Two values, of which each of the next two is one, on paths that contradict each other, and so on."""
    pair = tuple(Unknown(WHY, (one.leaf(None, requires),)) for requires in (True, False))
    for level in range(height):
        flag, other = frozenset({(level, True)}), frozenset({(level, False)})
        crossed = [((flag, pair[0]), (other, pair[1])), ((flag, pair[1]), (other, pair[0]))]
        pair = tuple(Unknown(WHY, tuple(value for _, value in options)) for options in crossed)
        for value, options in zip(pair, crossed, strict=True):
            value.options = options
    return pair[0]


def made(monkeypatch: pytest.MonkeyPatch, height: int, looks: int = 1) -> int:
    """How many nodes it takes to know the history of such a value."""
    one = graph()
    value, numbers, init = doubled(one, height), count(), Node.__init__

    def counting(self: Node, *given: Any) -> None:
        next(numbers)
        init(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Node, "__init__", counting)
        for _ in range(looks):
            one.given(value)
    return next(numbers)


@pytest.mark.parametrize("height", [8, 16, 32])
def test_nodes_grow_no_faster_than_the_values_that_they_are_of(
    height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(monkeypatch, 2 * height) <= 2 * 1.2 * made(monkeypatch, height)


def test_a_history_that_is_known_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(monkeypatch, 8, looks=3) == made(monkeypatch, 8)
