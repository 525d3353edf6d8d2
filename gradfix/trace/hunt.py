"""Looks for the first value and the first gradient that is not finite, and names the call."""

from __future__ import annotations

from typing import Any

import torch

from gradfix.trace.places import Spot
from gradfix.trace.state import State


class Hunt:
    """Armed only when a run has shown such gradients: it looks at every value."""

    def __init__(self, state: State, armed: bool) -> None:
        self.state = state
        self.armed = armed
        self.found = False

    def forward(self, name: str, found: list[Any], result: Any, spot: Spot | None) -> None:
        """A call that makes something infinite or undefined of finite arguments."""
        if not self.armed or self.found or not result.requires_grad or finite(result):
            return
        if all(finite(value) for value in found):
            self.found = True
            self.state.defect("not_finite", spot, [], "", {"op": name, "in": "forward"})

    def backward(self, nodes: list[tuple[Any, Spot | None, int]]) -> list[Any]:
        """Look into every node of a graph while backward runs."""
        return [node.register_hook(self._looker(node, spot)) for node, spot, _ in nodes] if self.armed else []

    def _looker(self, node: Any, spot: Spot | None) -> Any:
        name = str(node.name())

        def look(given: Any, came: Any) -> None:
            if self.found or all(finite(value) for value in given):
                return
            if all(finite(value) for value in came):
                self.found = True
                with self.state.quiet():
                    facts = {"op": name, "in": "backward"}
                    self.state.defect("not_finite", spot, [], "", facts)

        return look


def finite(value: Any) -> bool:
    """Whether all numbers of a tensor are finite; what is no tensor is."""
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return True
    return bool(torch.isfinite(value.detach()).all())
