"""Notices sums that grow from step to step and keep every graph alive (`total += loss`)."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from gradfix.tape.effects.operations import having, in_all_forms
from gradfix.trace.graphs import AGAIN, FREED
from gradfix.trace.places import Spot
from gradfix.trace.sources import nodes
from gradfix.trace.state import State

ADDS = in_all_forms(having("gathers"))


@dataclass(eq=False)
class Sum:
    """The latest result at one place, and how many steps it has outlived."""

    spot: Spot
    last: Any
    steps: int
    grown: int = 0


class Sums:
    """Sums by the place that adds to them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.at: dict[tuple[int, int], Sum] = {}

    def added(self, result: Any, found: list[Any], spot: Spot | None) -> None:
        """One more addition: does it continue what the same line made before the last step?"""
        if spot is None or result.numel() != 1:
            return
        key, turns = (id(spot[0]), spot[1]), self.state.turns
        known = self.at.get(key)
        if known is None:
            self.at[key] = Sum(spot, weakref.ref(result), turns)
            return
        before = known.last()
        if before is not None and turns > known.steps and any(value is before for value in found):
            known.grown += 1
        known.last, known.steps = weakref.ref(result), turns

    def close(self) -> None:
        """Sums that were never backpropagated, on top of graphs that were."""
        for one in self.at.values():
            value = one.last()
            node = value.grad_fn if value is not None and one.grown else None
            if node is None or AGAIN in node.metadata:
                continue
            freed = FREED.among(one for one, _ in nodes([node], 200))
            if freed and node not in freed:
                self.state.defect("graph_leak", one.spot, [], "", {"form": "sum"})
