"""The leaves that a program has, and what was done to them as leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.events import Add
from gradfix.tape.machine.account import Accounts

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.optimizers import Optimizers


class Leaves:
    """All leaves of one entry, those of the module itself among them."""

    def __init__(self, graph: Graph, optimizers: Optimizers, before: Leaves | None) -> None:
        self.graph = graph
        self.here = graph.here
        self.timeline = graph.timeline
        self.optimizers = optimizers
        self.accounts = Accounts(graph, optimizers)
        """Who draws up what may have happened to them in what wasn't followed."""
        self.every_leaf: list[Tensor] = [*before.every_leaf] if before else []
        self.told: dict[int, Tensor] = {**before.told} if before else {}
        """The parameters that were told to require no grad, whatever they were told since."""
        self.hooked: bool = before is not None and before.hooked
        """Whether somebody hears of gradients as they arrive."""
        self.moved: bool = before is not None and before.moved
        """Whether something was moved to a device."""

    @property
    def froze(self) -> bool:
        """Whether some parameter requires no grad, as it was told."""
        return bool(self.told) and any(leaf.requires is False for leaf in self.told.values())


def is_added(leaf: Tensor) -> bool:
    """Whether some backward reached a leaf, or may have."""
    return leaf.slot is not None and any(isinstance(event, Add) for event in leaf.slot.events)
