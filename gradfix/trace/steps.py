"""Watches optimizers: their steps, what they write, when gradients are cleared, and gradient scalers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradfix.defects import Role
from gradfix.trace.calls import storage, versions
from gradfix.trace.ledger import norms
from gradfix.trace.places import Spot
from gradfix.trace.report import UpdateEvent
from gradfix.trace.state import State
from gradfix.trace.writes import Stepped, Writes

NO_LEAF = "can't optimize a non-leaf Tensor"


class Steps:
    """Every optimizer of the program, from the hooks that torch offers."""

    def __init__(self, state: State, writes: Writes) -> None:
        self.state = state
        self.writes = writes
        self.names: dict[int, str] = {}
        self.stepped: list[Any] = []
        """Kept to the end: what they hold is asked for then."""
        self.versions: dict[int, list[int]] = {}
        self.after: Callable[[], None] = lambda: None
        self.scaled: Spot | None = None
        self.unscaled: set[int] = set()
        self.scaler_steps = 0

    def name(self, optimizer: Any) -> str:
        """The variable that holds an optimizer, or its class."""
        known = self.names.get(id(optimizer))
        if known is None:
            known = self.names[id(optimizer)] = self._named(optimizer) or type(optimizer).__name__
        return known

    def _named(self, optimizer: Any) -> str:
        for name, value in self.state.names.variables():
            if value is optimizer:
                return name
            if name == "self":
                held = vars(value).items() if hasattr(value, "__dict__") else ()
                found = next((key for key, item in held if item is optimizer), None)
                if found is not None:
                    return f"self.{found}"
        return ""

    def idle(self) -> list[Any]:
        """Optimizers that have not stepped, and train what none of those does that have."""
        steps, built = self.state.ledger.steps, self.state.optimizers.living()
        moved = {id(p) for one in built if id(one) in steps for p in parameters_of(one)}
        still = [one for one in built if id(one) not in steps and hasattr(one, "param_groups")]
        return [
            one for one in still if any(p.requires_grad and id(p) not in moved for p in parameters_of(one))
        ]

    def counted(self) -> dict[str, int]:
        """How many steps of each optimizer were seen."""
        found: dict[str, int] = {}
        for one in [*self.stepped, *self.idle()]:
            name = self.name(one)
            found[name] = found.get(name, 0) + self.state.ledger.steps.get(id(one), 0)
        return found

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """torch's hook in front of every step."""
        self.state.step_left_open()
        if not self.state.active:
            return
        self.state.optimizers.use(optimizer)
        closure = any(callable(value) for value in (*args, *kwargs.values()))
        parameters = parameters_of(optimizer)
        spot = self.state.places.here(2)
        with self.state.forgiving():
            self.versions[id(optimizer)] = versions(parameters)
            if not closure:
                self._report(optimizer, parameters, spot)
        if not closure:
            self.state.stepping, self.state.active = True, False
            self.state.suspend()

    def _report(self, optimizer: Any, parameters: list[Any], spot: Spot | None) -> None:
        if self.scaled is not None and not self.scaler_steps and id(optimizer) not in self.unscaled:
            facts = {"form": "step", "optimizer": self.name(optimizer)}
            self.state.defect("clip_before_unscale", spot, [(Role.SCALED, self.scaled)], "", facts)
        if all(one is not optimizer for one in self.stepped):
            self.stepped.append(optimizer)
        self.state.ledger.before_step(id(optimizer), self.name(optimizer), parameters, spot)

    def finished(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """torch's hook behind every step."""
        had_closure = not self.state.stepping
        self.state.step_left_open()
        if not self.state.active or id(optimizer) not in self.versions:
            return
        spot = self.state.places.here(2)
        with self.state.forgiving():
            if had_closure:
                self._report(optimizer, parameters_of(optimizer), spot)
            self._log(optimizer, spot)
            if self.state.ledger.steps.get(id(optimizer)) == 1 and not had_closure:
                self._tell_update(optimizer)
        self.after()

    def _tell_update(self, optimizer: Any) -> None:
        """What the first step has made of the weights, by which numbers, and the buffers as they are."""
        name_of, options, weights = self.state.names.of, {}, []
        for group in optimizer.param_groups:
            numbers = {k: float(v) for k, v in group.items() if isinstance(v, (int, float))}
            options.update({name_of(parameter): numbers for parameter in group["params"]})
            weights += group["params"]
        buffers = dict(buffers_of(self.state.modules.living()))
        found = dict(zip(map(name_of, weights), norms(weights), strict=True))
        kept = dict(zip(buffers, norms(list(buffers.values())), strict=True))
        name = self.name(optimizer)
        self.state.emit(
            UpdateEvent(
                event="update",
                optimizer=name,
                weights=found,
                options=options,
                buffers=kept,
                learned=dict(zip(found, map(self.state.ledger.sources, weights), strict=True)),
            )
        )

    def _log(self, optimizer: Any, spot: Spot | None) -> None:
        """What the step has written, where the version shows it and where it doesn't."""
        before = self.versions.pop(id(optimizer))
        parameters = parameters_of(optimizer)[: len(before)]
        now = versions(parameters)
        given, held = self.state.ledger.last_used(parameters), list(map(weakref.ref, parameters))
        stepped = Stepped(self.name(optimizer), spot, self.state.count, held, (before, now), given)
        if now != before:
            self.writes.stepped(stepped)
        if any(group.get("fused") for group in optimizer.param_groups):
            for parameter, old, new, where in zip(parameters, before, now, given, strict=True):
                if new == old and parameter.grad is not None:
                    self.writes.add(storage(parameter), new, stepped.write(where, silent=True))

    def zero_grad(self, real: Any, owner: Any, *args: Any, **kwargs: Any) -> Any:
        """zero_grad of optimizers and modules."""
        if not self.state.active:
            return real(owner, *args, **kwargs)
        module = isinstance(owner, torch.nn.Module)
        leaves = list(owner.parameters()) if module else parameters_of(owner)
        name = "" if module else self.name(owner)
        self.state.ledger.erased(leaves, self.state.places.here(2), name)
        with self.state.unwatched():
            return real(owner, *args, **kwargs)

    def init(self, real: Any, owner: Any, *args: Any, **kwargs: Any) -> Any:
        """Where each optimizer was built."""
        if not self.state.active:
            return real(owner, *args, **kwargs)
        spot = self.state.places.here(2)
        self.state.optimizers.add(owner, self.state.count, spot)
        try:
            return real(owner, *args, **kwargs)
        except ValueError as error:
            if NO_LEAF in str(error):
                self._results_given(args[0] if args else kwargs.get("params"), spot)
            raise

    def _results_given(self, params: Any, spot: Spot | None) -> None:
        """An optimizer was given the results of operations."""
        groups = params if isinstance(params, (list, tuple)) else ()
        given = [each["params"] if isinstance(each, dict) else each for each in groups]
        lists = [each if isinstance(each, (list, tuple)) else [each] for each in given]
        for one in (one for each in lists for one in each):
            made = one.grad_fn.metadata.get("gradfix") if getattr(one, "grad_fn", None) is not None else None
            if made is not None:
                evidence = [(Role.OPTIMISED, spot)]
                self.state.defect("grad_of_non_leaf", made[1], evidence, NO_LEAF, {"optimised": True})

    def scaler(self, role: str) -> Callable[..., Any]:
        """scale, unscale_, step and update of a gradient scaler."""

        def watch(real: Any, scaler: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.state.active or not scaler.is_enabled():
                return real(scaler, *args, **kwargs)
            if role == "scale":
                self.scaled = self.state.places.here(2)
            elif role == "unscale_" and args:
                self.unscaled.add(id(args[0]))
            elif role == "update":
                self.scaled = None
                self.unscaled.clear()
            self.scaler_steps += role == "step"
            try:
                return real(scaler, *args, **kwargs)
            finally:
                self.scaler_steps -= role == "step"

        return watch

    def clip(self, real: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        """Clipping gradients that a scaler has multiplied."""
        if not self.state.active:
            return real(parameters, *args, **kwargs)
        if not isinstance(parameters, (list, tuple, torch.Tensor)):
            parameters = list(parameters)
        spot = self.state.places.here(2)
        if self.scaled is not None and not self._unscaled(parameters):
            evidence = [(Role.SCALED, self.scaled)]
            self.state.defect("clip_before_unscale", spot, evidence, "", {"form": "clip"})
        with self.state.unwatched():
            return real(parameters, *args, **kwargs)

    def _unscaled(self, parameters: Any) -> bool:
        wanted = {id(parameters)} if isinstance(parameters, torch.Tensor) else {id(p) for p in parameters}
        owners = [o for o, *_ in self.state.optimizers.items() if wanted & {id(p) for p in parameters_of(o)}]
        return any(id(owner) in self.unscaled for owner in owners)


def parameters_of(optimizer: Any) -> list[Any]:
    """Everything that an optimizer holds."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def buffers_of(modules: list[Any]) -> Iterator[tuple[str, Any]]:
    """The buffers of modules in the order in which those were built, by their class."""
    for number, module in enumerate(modules):
        for name, buffer in vars(module).get("_buffers", {}).items():
            if buffer is not None and buffer.is_floating_point():
                yield f"{type(module).__name__}#{number}.{name}", buffer
