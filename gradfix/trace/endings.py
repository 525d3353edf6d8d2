"""What can only be said when the run is over: parameters that never got a gradient, graphs kept alive."""

from __future__ import annotations

import gc
from typing import Any

import torch

from gradfix.trace.backwards import Backwards
from gradfix.trace.places import Spot
from gradfix.trace.sources import Source
from gradfix.trace.state import State, Step
from gradfix.trace.steps import Steps, parameters_of

MISSPELT = ("require_grad", "required_grad", "requires_grads", "requiresgrad", "requires_gradient")
KEPT = 2


class Endings:
    """Reads the books at the end."""

    def __init__(self, state: State, backwards: Backwards, steps: Steps) -> None:
        self.state = state
        self.backwards = backwards
        self.steps = steps

    def close(self) -> dict[str, str]:
        """Say what is left to say; the reasons for each parameter without a gradient."""
        self._misspelt()
        self._kept_alive()
        return self._unreached() if self.backwards.succeeded or self.state.ledger.steps else {}

    def _unreached(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        for optimizer, built_at, built in self.state.optimizers.items():
            parameters = parameters_of(optimizer)
            missed = [p for p in parameters if not self._ever(p)]
            for parameter in missed:
                reasons[self.state.names.of(parameter)] = self._reason(parameter)
            trained = [p for p in missed if p.requires_grad]
            if id(optimizer) in self.state.ledger.steps and trained:
                self._optimizer(optimizer, trained, len(trained) == len(parameters), built_at, built)
        self._in_no_optimizer(reasons)
        return reasons

    def _ever(self, parameter: Any) -> bool:
        slot = self.state.ledger.slots.get(id(parameter))
        return slot is not None and slot.leaf() is parameter and slot.ever

    def _cut_for(self, parameters: list[Any]) -> Source | None:
        wanted = {id(p) for p in parameters}
        found = [s for s in self.state.origins.all if s.leaves & wanted and s.kind != "leaf_rebound"]
        return found[-1] if found else None

    def _reason(self, parameter: Any) -> str:
        if not parameter.requires_grad:
            return "frozen"
        cut = self._cut_for([parameter])
        if cut is not None and cut.spot is not None:
            code = cut.spot[0]
            return f"cut by {cut.form or cut.kind} in {code.co_name}"
        return "its result is not used by the loss" if id(parameter) in self.state.used else "never called"

    def _optimizer(
        self, optimizer: Any, missed: list[Any], whole: bool, built_at: int, built: Spot | None
    ) -> None:
        name = self.steps.name(optimizer)
        facts: dict[str, Any] = {"optimizer": name, "parameters": [self.state.names.of(p) for p in missed][:20]}
        replaced = self._replacement(built_at)
        if replaced is not None and any(id(p) not in self.state.used for p in missed):
            self.state.defect("optimizer_before_replacement", built, [("replaced here", replaced)], "", facts)
            return
        cut = self._cut_for(missed)
        if cut is not None:
            evidence: list[Step] = [("optimizer built here", built)]
            self.state.defect(cut.kind, cut.spot, evidence, "", {"form": cut.form, **facts})
        if whole:
            steps: list[Step] = [("cut here", cut.spot)] if cut is not None else []
            self.state.defect("unreached_parameters", built, steps, "", facts)

    def _replacement(self, built_at: int) -> Spot | None:
        """A module built after the optimizer, trained by backward and by no optimizer."""
        held = {id(p) for o, *_ in self.state.optimizers.items() for p in parameters_of(o)}
        for module, at, spot in self.state.modules.items():
            own = vars(module).get("_parameters", {}).values()
            if at >= built_at and any(p is not None and self._ever(p) and id(p) not in held for p in own):
                return spot
        return None

    def _in_no_optimizer(self, reasons: dict[str, str]) -> None:
        """Parameters that backward reaches but nobody trains: unregistered ones among them."""
        if not self.state.ledger.steps:
            return
        held = {id(p) for o, *_ in self.state.optimizers.items() for p in parameters_of(o)}
        registered = {id(p) for m, *_ in self.state.modules.items() if children_of(m) for p in m.parameters()}
        for slot in list(self.state.ledger.slots.values()):
            leaf = slot.leaf()
            if leaf is None or id(leaf) in held or not slot.ever or not isinstance(leaf, torch.nn.Parameter):
                continue
            reasons[self.state.names.of(leaf)] = "in no optimizer"
            if id(leaf) not in registered:
                self._unregistered(leaf)

    def _unregistered(self, leaf: Any) -> None:
        """A plain list or dict of a module that holds what it should have registered."""
        for module, *_ in self.state.modules.items():
            for name, value in list(vars(module).items()):
                if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                    continue
                items = value.values() if isinstance(value, dict) else value
                if any(item is leaf or leaf_in(item, leaf) for item in items):
                    holder = "dict" if isinstance(value, dict) else "list"
                    owner = self.state.built_at(module)
                    inner = next((self.state.built_at(i) for i in items if leaf_in(i, leaf)), None)
                    facts = {"attribute": name, "container": holder, "class": type(module).__name__}
                    self.state.defect(
                        "unregistered_parameters", inner or owner, [("built here", owner)], "", facts
                    )
                    return

    def _misspelt(self) -> None:
        for module, *_ in self.state.modules.items():
            if "requires_grad" in vars(module):
                self._misspelt_on("module", "requires_grad", self.state.built_at(module))
        for optimizer, _, built in self.state.optimizers.items():
            for parameter in parameters_of(optimizer):
                self._misspelt_tensor(parameter, built)
        for module, *_ in self.state.modules.items():
            for parameter in vars(module).get("_parameters", {}).values():
                if parameter is not None:
                    self._misspelt_tensor(parameter, self.state.built_at(module))

    def _misspelt_tensor(self, value: Any, near: Spot | None) -> None:
        for name in vars(value):
            if name in MISSPELT:
                self._misspelt_on("tensor", name, near)

    def _misspelt_on(self, on: str, attribute: str, near: Spot | None) -> None:
        facts = {"on": on, "attribute": attribute}
        self.state.defect("requires_grad_misspelt", near, [], "", facts)

    def _kept_alive(self) -> None:
        """Roots of earlier backwards that somebody still holds, and sums that grow from turn to turn."""
        alive = [(root(), spot) for root, spot in self.backwards.roots if root() is not None]
        by_place: dict[int, list[Any]] = {}
        for value, spot in alive:
            if spot is not None and value.grad_fn is not None:
                by_place.setdefault(spot[1] + id(spot[0]), []).append((value, spot))
        for held in by_place.values():
            if len(held) > KEPT:
                self._held(held)

    def _held(self, held: list[Any]) -> None:
        value, spot = held[0]
        made = value.grad_fn.metadata.get("gradfix")
        holders = [r for r in gc.get_referrers(value) if isinstance(r, list) and r is not held and len(r) > KEPT]
        names = [self.state.names.holder(one) for one in holders]
        named = next((name for name in names if name), "")
        if named:
            facts = {"held_by": named, "form": "append"}
            self.state.defect("graph_leak", made[1] if made else spot, [("backward here", spot)], "", facts)


def children_of(module: Any) -> bool:
    """Whether a module is whole: `super().__init__()` has run."""
    return "_modules" in vars(module)


def leaf_in(item: Any, leaf: Any) -> bool:
    """Whether a module holds a leaf."""
    return isinstance(item, torch.nn.Module) and any(leaf is p for p in item.parameters())
