"""The leaves that a program has, and what was done to them as leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gradfix.tape.domain.events import Add
from gradfix.tape.domain.torch_values import Opaque
from gradfix.tape.domain.values import Seq, Unknown
from gradfix.tape.domain.written import Gathered, Gatherings
from gradfix.tape.machine.account import Accounts

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.optimizers import Optimizers

MADE_OF = 3
"""Through how many calls a leaf is looked for that a value may be."""
FAR = 32
"""Through how many values the modules are looked for that a module was had from."""

Inside: TypeAlias = Callable[[Gatherings], Sequence[Gathered]]
"""How the parameters are had of those modules that one may be, by what is known of them by then."""


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
        self.gatherings = Gatherings(graph.trail.written)
        """The parameters of modules that were asked for."""
        self.stands_for: dict[int, Inside] = {**before.stands_for} if before else {}
        """The parameters of those modules that one may be which isn't known, by the leaf that stands for its
        own."""
        self.modules: dict[int, tuple[Tensor, Unknown]] = {**before.modules} if before else {}
        """What isn't known and was taken for a module, by the leaf that stands for its parameters."""
        self.hooked: bool = before is not None and before.hooked
        """Whether somebody hears of gradients as they arrive."""
        self.moved: bool = before is not None and before.moved
        """Whether something was moved to a device."""

    @property
    def froze(self) -> bool:
        """Whether some parameter requires no grad, as it was told."""
        return bool(self.told) and any(leaf.requires is False for leaf in self.told.values())

    def overlapping(self, leaves: Iterable[Tensor]) -> list[Tensor]:
        """What may be some of the same parameters as leaves: those of a module that isn't known and of what
        was had from it, a part or all of it, whichever of them was met first."""
        own = {id(leaf) for leaf in leaves}
        found: dict[int, Tensor] = {}
        for leaf, module in list(self.modules.values()) if own else ():
            inside = self.stands_for.get(id(leaf))
            others = inside(self.gatherings) if inside is not None else ()
            if id(leaf) in own:
                found.update((id(other), other) for other in _had_from(module))
                found.update((id(other), other) for one in others for other in one.leaves)
                continue
            held = any(not own.isdisjoint(one.ids) for one in others)
            if held or any(id(other) in own for other in _had_from(module)):
                found[id(leaf)] = leaf
        return [leaf for key, leaf in found.items() if key not in own]

    def may_learn(self, value: Value, deep: int = MADE_OF) -> bool:
        """Whether a value, or what it was made of, was asked for as what requires grad."""
        if not self.asked or not isinstance(value, Unknown) or not deep:
            return False
        return id(value) in self.asked or any(self.may_learn(held, deep - 1) for held in value.holds)


def _had_from(module: Unknown) -> Iterator[Tensor]:
    """The leaves that stand for the modules that one was had from: an attribute, an element, by a call."""
    stack, seen = [*module.holds], 0
    while stack and seen < FAR:
        value = stack.pop()
        seen += 1
        if isinstance(value, Opaque):
            yield value.weights
            stack.append(value.of)
        elif isinstance(value, Unknown):
            if value.module is not None:
                yield value.module.weights
            stack.extend(value.holds)
        elif isinstance(value, Seq):
            stack.extend(value.items)


def is_added(leaf: Tensor) -> bool:
    """Whether some backward reached a leaf, or may have."""
    return leaf.slot is not None and any(isinstance(event, Add) for event in leaf.slot.events)
