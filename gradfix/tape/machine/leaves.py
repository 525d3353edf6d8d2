"""The leaves that a program has, and what was done to them as leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gradfix.tape.domain.events import Add
from gradfix.tape.domain.values import Unknown
from gradfix.tape.machine.account import Accounts

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.optimizers import Optimizers

MADE_OF = 3
"""Through how many calls a leaf is looked for that a value may be."""


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
        self.asked: dict[int, Value] = {**before.asked} if before else {}
        """What calls that aren't known were asked to make so that it requires grad."""
        self.stands_for: dict[int, Callable[[], Iterable[Tensor]]] = {**before.stands_for} if before else {}
        """The parameters of those modules that one may be which isn't known, by the leaf that stands for its
        own."""
        self.hooked: bool = before is not None and before.hooked
        """Whether somebody hears of gradients as they arrive."""
        self.moved: bool = before is not None and before.moved
        """Whether something was moved to a device."""

    @property
    def froze(self) -> bool:
        """Whether some parameter requires no grad, as it was told."""
        return bool(self.told) and any(leaf.requires is False for leaf in self.told.values())

    def may_learn(self, value: Value, deep: int = MADE_OF) -> bool:
        """Whether a value, or what it was made of, was asked for as what requires grad."""
        if not self.asked or not isinstance(value, Unknown) or not deep:
            return False
        return id(value) in self.asked or any(self.may_learn(held, deep - 1) for held in value.holds)


def is_added(leaf: Tensor) -> bool:
    """Whether some backward reached a leaf, or may have."""
    return leaf.slot is not None and any(isinstance(event, Add) for event in leaf.slot.events)
