"""Keeps the books on gradients: which backward gave to which leaf, which step used it, what was erased."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import torch

from gradfix.defects import Role
from gradfix.trace.calls import versions
from gradfix.trace.places import Spot, resolve
from gradfix.trace.report import ParameterAtStep, Place, StepEvent
from gradfix.trace.state import State

BY_HAND = 0
MOST_GIVEN = 64
FreshOrStale: TypeAlias = Literal["", "fresh", "stale"]


class Contribution:
    """What one backward added to one leaf, and the steps that have used it."""

    __slots__ = ("at", "serial", "spot", "used")

    def __init__(self, spot: Spot | None, at: int, serial: int) -> None:
        self.spot = spot
        self.at = at
        self.serial = serial
        """Which backward; the same for every leaf that it reached."""
        self.used: dict[int, Spot | None] = {}


@dataclass(eq=False)
class Slot:
    """The gradient slot of one leaf."""

    leaf: Any
    given: list[Contribution] = field(default_factory=list)
    erased: list[tuple[Contribution, Spot | None]] = field(default_factory=list)
    ever: bool = False
    read: int = -1
    rebound: Spot | None = None


class Ledger:
    """The gradient slots of every leaf that a backward has reached."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.slots: dict[int, Slot] = {}
        self.steps: dict[int, int] = {}
        self.hand: dict[int, int] = {}
        self.kept: set[int] = set()
        """Leaves that the program itself has written once training was under way: they follow others."""
        self.measured: dict[int, tuple[Any, int, float]] = {}
        self.serial = 0
        self.served: set[int] = set()
        """Backwards that some step has used."""

    def slot(self, leaf: Any) -> Slot:
        """A leaf's slot, made when first asked for."""
        found = self.slots.get(id(leaf))
        if found is None or found.leaf() is not leaf:
            found = self.slots[id(leaf)] = Slot(weakref.ref(leaf))
        return found

    def before_backward(self, leaves: list[Any]) -> None:
        """Notice gradients that were cleared without a call we saw."""
        held, slots = [], self.slots
        for leaf in leaves:
            slot = slots.get(id(leaf))
            if slot is None or slot.leaf() is not leaf:
                self.slot(leaf)
            elif not slot.given:
                continue
            elif leaf.grad is None:
                slot.given.clear()
            else:
                held.append(slot)
        for slot, norm in zip(held, self.norms_of([slot.leaf() for slot in held]), strict=True):
            if norm == 0.0:
                slot.given.clear()

    def after_backward(self, leaves: list[Any], spot: Spot | None) -> list[Any]:
        """Each leaf that was reached got something: those that have it."""
        self.serial += 1
        serial, count = self.serial, self.state.count
        slots, given = self.slots, [leaf for leaf in leaves if leaf.grad is not None]
        for leaf in given:
            slot = slots.get(id(leaf))
            if slot is None or slot.leaf() is not leaf:
                slot = self.slot(leaf)
            slot.given.append(Contribution(spot, count, serial))
            slot.ever = True
            if len(slot.given) > MOST_GIVEN:
                del slot.given[:-MOST_GIVEN]
        return given

    def erased(self, leaves: list[Any], spot: Spot | None, optimizer: str) -> None:
        """A call clears these gradients: fresh ones are lost."""
        for leaf in leaves:
            slot = self.slots.get(id(leaf))
            if slot is None or not slot.given:
                continue
            for one in slot.given:
                if not one.used:
                    slot.erased.append((one, spot))
            slot.given.clear()

    def read(self, leaf: Any) -> None:
        """The program looks at a leaf's gradient."""
        slot = self.slots.get(id(leaf))
        if slot is not None:
            slot.read = self.state.count

    def read_of_non_leaf(self, value: Any, spot: Spot | None, asked: bool) -> None:
        """The program looks for a gradient where torch keeps none; `asked`: only whether there is one."""
        made = value.grad_fn.metadata.get("gradfix") if value.grad_fn is not None else None
        rebound = [s for s, _ in self.state.origins.get(value) if s.rebinds]
        if rebound:
            self.state.defect("leaf_rebound", rebound[0].spot, [(Role.GRAD_READ, spot)])
        elif made is not None and not asked:
            evidence = [(Role.GRAD_READ, spot)]
            self.state.defect("grad_of_non_leaf", made[1], evidence, "The .grad attribute of a non-leaf")

    def updated_by_hand(self, leaf: int, spot: Spot | None) -> None:
        """A leaf was written after its gradient was read: an update without an optimizer."""
        if self.state.turns:
            self.kept.add(leaf)
        slot = self.slots.get(leaf)
        if slot is None or not slot.given or slot.read < slot.given[-1].at:
            return
        owner = slot.leaf()
        if owner is None:
            return
        if len(slot.given) == 1 and self.state.settled.skips((BY_HAND, leaf), spot):
            self._use([slot], BY_HAND, spot)
            self._turn(self.hand, leaf)
            return
        self._stale({id(owner): slot}, BY_HAND, "", spot)
        state: FreshOrStale = "stale" if any(BY_HAND in one.used for one in slot.given) else "fresh"
        norm = self.norms_of([owner])[0]
        self._use([slot], BY_HAND, spot)
        self._turn(self.hand, leaf)
        at = ParameterAtStep(grad=kind_of(norm), norm=finite(norm), state=state)
        self._emit(spot, "", {self.state.names.of(owner): at})

    def before_step(self, key: int, name: str, parameters: list[Any], spot: Spot | None) -> None:
        """Say what a step is about to use, and whether it may."""
        slots = {id(p): slot for p in parameters if (slot := self.slots.get(id(p))) is not None}
        given = [p for p in parameters if p.grad is not None]
        if self._as_before(key, given, slots):
            self._use(list(slots.values()), key, spot)
            self._turn(self.steps, key)
            return
        found = dict(zip(map(id, given), self.norms_of(given), strict=True))
        report = {
            named: at_step(found.get(id(parameter)), slots.get(id(parameter)), key)
            for parameter, named in zip(parameters, self.state.names.all(parameters), strict=True)
        }
        live = {k: slot for k, slot in slots.items() if found.get(k)}
        self._stale(live, key, name, spot)
        self._use(list(slots.values()), key, spot)
        self._lost([slot for slot in slots.values() if slot.erased], live, name, spot)
        for slot in slots.values():
            if slot.erased:
                slot.erased.clear()
        self._turn(self.steps, key)
        self._emit(spot, name, report)

    def _as_before(self, key: int, given: list[Any], slots: dict[int, Slot]) -> bool:
        """Whether a step uses what earlier ones have used: one gradient for each of the same parameters."""
        for slot in slots.values():
            if len(slot.given) > 1 or slot.erased:
                return False
        return self.state.settled.skips(key, [id(one) for one in given])

    def _turn(self, counts: dict[int, int], key: int) -> None:
        counts[key] = counts.get(key, 0) + 1
        self.state.turns += 1

    def last_used(self, parameters: list[Any]) -> list[Spot | None]:
        """The backwards that gave what the latest step has used."""
        found = map(self.slots.get, map(id, parameters))
        return [slot.given[-1].spot if slot is not None and slot.given else None for slot in found]

    def sources(self, parameter: Any) -> list[Place]:
        """The backwards whose gradients a step finds in a parameter."""
        slot = self.slots.get(id(parameter))
        spots = dict.fromkeys(one.spot for one in slot.given) if slot is not None else ()
        return [resolve(spot) for spot in spots if spot is not None]

    def latest(self) -> list[Any]:
        """The leaves that hold what the latest backward gave."""
        found = (
            one.leaf() for one in self.slots.values() if one.given and one.given[-1].serial == self.serial
        )
        return [leaf for leaf in found if leaf is not None]

    def norms_of(self, leaves: list[Any]) -> list[float]:
        """The norm of each leaf's gradient; measured again only when it has changed."""
        measured, gradients = self.measured, [leaf.grad for leaf in leaves]
        now, found, fresh = versions(gradients), [], []
        for at, leaf in enumerate(leaves):
            one = measured.get(id(leaf))
            if one is None or one[1] != now[at] or one[0]() is not gradients[at] or now[at] < 0:
                fresh.append(at)
            found.append(one[2] if one is not None else 0.0)
        for at, norm in zip(fresh, norms([gradients[at] for at in fresh]), strict=True):
            measured[id(leaves[at])] = (weakref.ref(gradients[at]), now[at], norm)
            found[at] = norm
        return found

    def _use(self, slots: list[Slot], key: int, spot: Spot | None) -> None:
        for slot in slots:
            for one in slot.given:
                one.used.setdefault(key, spot)
                self.served.add(one.serial)

    def _stale(self, slots: dict[int, Slot], key: int, name: str, spot: Spot | None) -> None:
        """A step uses a gradient that an earlier step of the same optimizer has used."""
        for slot in slots.values():
            if len(slot.given) < 2:
                continue
            used = [one for one in slot.given if key in one.used]
            fresh = next((one for one in slot.given if key not in one.used), None)
            if not used or fresh is None:
                continue
            evidence = [(Role.USED, used[-1].used[key]), (Role.USED_AGAIN, spot)]
            facts = {"optimizer": name, "parameter": self.state.names.of(slot.leaf())}
            self.state.defect("missing_zero_grad", fresh.spot, evidence, "", facts)
            return

    def _lost(self, slots: list[Slot], live: dict[int, Slot], name: str, spot: Spot | None) -> None:
        """A step misses what backward gave, because it was erased in between."""
        for slot in slots:
            lost = [item for item in slot.erased if item[0].serial not in self.served]
            if live:
                places = {one.spot for one in slot.given}
                lost = [item for item in lost if item[0].spot in places]
            if lost:
                given, where = lost[-1]
                evidence = [(Role.GIVEN, given.spot), (Role.FINDS_NONE, spot)]
                self.state.defect("zero_grad_before_step", where, evidence, "", {"optimizer": name})
                return

    def _emit(self, spot: Spot | None, name: str, report: dict[str, ParameterAtStep]) -> None:
        self.state.emit(
            StepEvent(
                event="step",
                place=resolve(spot) if spot is not None else None,
                optimizer=name,
                parameters=report,
            )
        )


def at_step(norm: float | None, slot: Slot | None, key: int) -> ParameterAtStep:
    """What a step finds in one parameter."""
    if not norm:
        return {"grad": kind_of(norm), "norm": norm, "state": ""}
    state: FreshOrStale = "fresh"
    for one in slot.given if slot is not None else ():
        if key in one.used:
            state = "stale"
    if math.isfinite(norm):
        return {"grad": "finite", "norm": norm, "state": state}
    return {"grad": "not finite", "norm": None, "state": state}


def kind_of(norm: float | None) -> Literal["none", "zero", "finite", "not finite"]:
    """A gradient in one word."""
    if norm is None:
        return "none"
    if not math.isfinite(norm):
        return "not finite"
    return "finite" if norm else "zero"


def finite(norm: float | None) -> float | None:
    """A norm as JSON can hold it."""
    return norm if norm is not None and math.isfinite(norm) else None


def norms(gradients: list[Any]) -> list[float]:
    """The norm of each gradient, in one call where torch can."""
    if not gradients:
        return []
    if len(gradients) == 1:
        return [one_norm(gradients[0])]
    with torch.no_grad():
        try:
            found: list[float] = torch.stack(list(torch._foreach_norm(gradients))).tolist()
            return found
        except (RuntimeError, NotImplementedError, TypeError, IndexError):
            return [one_norm(gradient) for gradient in gradients]


def one_norm(gradient: Any) -> float:
    """The norm of one gradient, sparse and half precision included."""
    with torch.no_grad():
        value = gradient.detach()
        value = value.coalesce().values() if value.is_sparse else value
        if value.is_complex():
            value = torch.view_as_real(value)
        return float(torch.linalg.vector_norm(value.float() if value.dtype != torch.float64 else value))
