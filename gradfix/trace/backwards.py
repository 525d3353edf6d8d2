"""Watches every backward: what it started from, what it reached, and which rule it broke when it fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from gradfix.defects import Role
from gradfix.trace.calls import FLAT, storage
from gradfix.trace.graphs import (
    AGAIN,
    FREED,
    KEY,
    held,
    lost,
    only,
    op_of,
    placed,
    saved_names,
    walked,
)
from gradfix.trace.hunt import Hunt
from gradfix.trace.ledger import finite
from gradfix.trace.places import Spot, resolve
from gradfix.trace.report import BackwardEvent, Root
from gradfix.trace.severed import Severed
from gradfix.trace.sources import nodes
from gradfix.trace.state import State, Step
from gradfix.trace.writes import Write, Writes

AT_VERSION = re.compile(r"is at version (\d+); expected version (\d+)")


class Backwards:
    """Stands in front of `torch.autograd.backward` and `torch.autograd.grad`."""

    def __init__(self, state: State, writes: Writes) -> None:
        self.state = state
        self.writes = writes
        self.severed = Severed(state)
        self.hunt = Hunt(state, armed=False)
        self.running: list[Spot | None] = []
        self.done = 0
        self.succeeded = 0
        self.untold = False
        """Whether the latest one was left out, being like those before it."""
        self.filled = 0
        """Those that fill `.grad`: `autograd.grad` hands its gradients out instead."""
        self.roots: list[tuple[Any, Spot | None]] = []
        self.first: Callable[[], None] = lambda: None
        """What is to be said before the first."""
        self.after: Callable[[], None] = lambda: None
        self.after_failure: Callable[[], None] = lambda: None

    def backward(self, real: Any, *args: Any, **kwargs: Any) -> Any:
        """`torch.autograd.backward` and what calls it."""
        return self._watched(real, True, args, kwargs)

    def grad(self, real: Any, *args: Any, **kwargs: Any) -> Any:
        """`torch.autograd.grad`."""
        return self._watched(real, False, args, kwargs)

    def _watched(self, real: Any, fills: bool, args: Any, kwargs: Any) -> Any:
        self.state.step_left_open()
        return self._run(real, fills, args, kwargs) if self.state.active else real(*args, **kwargs)

    def _run(self, real: Any, fills: bool, args: Any, kwargs: Any) -> Any:
        state = self.state
        if self.running:
            return self._nested(real, fills, args, kwargs)
        spot = state.places.here(3)
        first = args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))
        roots = [first] if isinstance(first, torch.Tensor) else list(first or ())
        roots = [root for root in roots if isinstance(root, torch.Tensor)]
        leaves: list[Any] = []
        inner: list[Any] = []
        looking: list[Any] = []
        with state.forgiving():
            self.first()
            leaves, inner = walked(roots)
            if fills:
                leaves = only(leaves, kwargs.get("inputs"))
                state.ledger.before_backward(leaves)
            if self.writes.silent:
                self._silent(roots, inner, spot)
            if self.hunt.armed:
                looking = self.hunt.backward(placed(roots))
        self.running = [spot]
        try:
            result = real(*args, **kwargs)
        except BaseException as error:
            self.running = []
            with state.forgiving():
                asked = () if fills else args[1] if len(args) > 1 else kwargs.get("inputs")
                self._failed(roots, asked, spot, error)
                self.after_failure()
            raise
        self.running = []
        for hook in looking:
            hook.remove()
        with state.forgiving():
            keeps = bool(kwargs.get("retain_graph") or kwargs.get("create_graph"))
            keeps = keeps or any(value is True for value in args[2:4])
            self.filled += fills
            state.origins.entered(roots, inner)
            self._succeeded(roots, leaves if fills else [], spot, [] if keeps else inner)
            if not fills and len(args) < 5 and "create_graph" not in kwargs:
                self.severed.handed_out(result, leaves, spot)
        self.after()
        return result

    def _nested(self, real: Any, fills: bool, args: Any, kwargs: Any) -> Any:
        """A backward inside a backward (a reentrant checkpoint): part of the outer one."""
        spot = self.running[0]
        roots = [args[0]] if isinstance(args[0], torch.Tensor) else list(args[0])
        with self.state.quiet():
            leaves, inner = walked([root for root in roots if isinstance(root, torch.Tensor)])
            self.state.origins.entered(roots, inner)
        result = real(*args, **kwargs)
        if fills:
            with self.state.quiet():
                self.state.ledger.after_backward(leaves, spot)
        return result

    def _event(
        self, roots: list[Any], spot: Spot | None, error: str, reached: dict[str, float | None]
    ) -> None:
        root = roots[0] if roots else None
        node = root.grad_fn.name() if root is not None and root.grad_fn is not None else ""
        self.state.emit(
            BackwardEvent(
                event="backward",
                place=resolve(spot) if spot is not None else None,
                root=Root(
                    shape=list(root.shape) if root is not None else [],
                    grad_fn=node,
                    requires_grad=bool(root is not None and root.requires_grad),
                    value=number(root),
                ),
                error=error,
                reached=reached,
            )
        )

    def _succeeded(self, roots: list[Any], leaves: list[Any], spot: Spot | None, freed: list[Any]) -> None:
        state = self.state
        self.done += 1
        self.succeeded += 1
        given = state.ledger.after_backward(leaves, spot)
        if any(root.is_leaf for root in roots):
            own = {id(root) for root in roots}
            given = [leaf for leaf in given if id(leaf) not in own]
        self.untold = self._as_before(roots, given, spot)
        if not self.untold:
            self._tell(roots, given, spot)
        state.kept = state.modules.living()
        self.severed.after(roots, leaves, spot)
        if not torch.is_grad_enabled():
            state.defect("backward_in_no_grad", spot, [], "", {})
        FREED.add(freed, (spot, self.done))
        for root in roots:
            if root.grad_fn is not None:
                self.roots.append((state.weak(root), spot))
        del self.roots[:-64]
        state.origins.recent.clear()

    def _as_before(self, roots: list[Any], given: list[Any], spot: Spot | None) -> bool:
        """Whether a backward reached what it always reaches, from a loss that is a number."""
        if self.hunt.armed or not self.state.settled.skips(id(spot), [id(leaf) for leaf in given]):
            return False
        return bool(roots) and number(roots[0]) is not None

    def _tell(self, roots: list[Any], given: list[Any], spot: Spot | None) -> None:
        reached = self._norms(given)
        self._event(roots, spot, "", reached)
        if reached and not any(norm != 0.0 for norm in reached.values()):
            self._flat(roots, spot)

    def close(self) -> None:
        """The latest gradients, if those were not told of."""
        if self.untold:
            self.untold = False
            leaves = self.state.ledger.latest()
            self._event([], None, "", self._norms([leaf for leaf in leaves if leaf.grad is not None]))

    def _norms(self, given: list[Any]) -> dict[str, float | None]:
        found = map(finite, self.state.ledger.norms_of(given))
        return dict(zip(self.state.names.all(given), found, strict=True))

    def _flat(self, roots: list[Any], spot: Spot | None) -> None:
        """Nothing but zeros arrived: is there a call whose gradient is zero everywhere?"""
        for node, where, _ in placed(roots):
            if op_of(node) in FLAT:
                facts = {"form": op_of(node)}
                self.state.defect("non_differentiable_loss", where, [(Role.BACKWARD_HERE, spot)], "", facts)

    def _failed(self, roots: list[Any], asked: Any, spot: Spot | None, error: BaseException) -> None:
        text = str(error)
        self.done += 1
        self._event(roots, spot, f"{type(error).__name__}: {text}", {})
        if "modified by an inplace operation" in text:
            self._spoiled(roots, spot, text)
        elif "backward through the graph a second time" in text or "already been freed" in text:
            self._freed(roots, spot, text)
        elif "does not require grad" in text:
            self.severed.refused(roots, asked, spot, text)
        elif "implicitly created only for scalar outputs" in text:
            facts = {"shape": list(roots[0].shape) if roots else []}
            self.state.defect("non_scalar_backward", spot, self._made(roots), text, facts)

    def _made(self, roots: list[Any]) -> list[Step]:
        made = [r.grad_fn.metadata.get(KEY) for r in roots if r.grad_fn is not None]
        return [(Role.MADE, one[1]) for one in made if one is not None]

    def _spoiled(self, roots: list[Any], spot: Spot | None, text: str) -> None:
        """Touch what each node saved: the one that refuses names the operation and the storage."""
        for node, where, at in placed(roots):
            for name in saved_names(node):
                for key, refusal in lost(node, name):
                    write = self._culprit(key, at, refusal)
                    if write is not None:
                        self._say_spoiled(node, name, where, write, spot, text)
                        continue
                    self.state.notes.append(f"no recorded write explains what {node.name()} lost")

    def _culprit(self, key: int, at: int, refusal: str) -> Write | None:
        """The first write to that storage after it was saved."""
        found = AT_VERSION.search(refusal)
        expected = int(found.group(2)) if found else 0
        ours = [write for after, write in self.writes.to(key) if after > expected] if key else []
        later = [w for w in ours if w.at >= at] or ours
        return later[0] if later else None

    def _say_spoiled(
        self, node: Any, saved: str, where: Spot | None, write: Write, spot: Spot | None, text: str
    ) -> None:
        saver = op_of(node)
        evidence: list[Step] = [(Role.SAVED_BY, where), (Role.OVERWRITTEN, write.spot)]
        evidence.append((Role.BACKWARD_NEEDS, spot))
        facts: dict[str, Any] = {"saver": saver, "saved": saved, "operation": write.name}
        kind = "inplace_overwrites_saved"
        place = write.spot
        if write.step:
            kind = "step_before_backward"
            evidence.insert(0, (Role.STEPS_BACKWARD, write.backward))
            facts["optimizer"] = write.step
        elif write.module and write.built is not None:
            kind = "inplace_module"
            place = write.built
            facts["module"] = write.module
        elif write.silent:
            kind = "write_through_data"
            facts["parameter"] = write.leaf
        self.state.defect(kind, place, evidence, text, facts)

    def _silent(self, roots: list[Any], inner: list[Any], spot: Spot | None) -> None:
        """Writes that no version counts: compare storages, but only when one came after this graph began."""
        made = (node.metadata.get(KEY) for node in inner)
        oldest = min((one[0] for one in made if one is not None), default=self.state.count)
        by_storage: dict[int, list[Write]] = {}
        for key, write in self.writes.silent:
            if write.at >= oldest:
                by_storage.setdefault(key, []).append(write)
        if not by_storage:
            return
        for node, where, at in placed(roots):
            for name in saved_names(node):
                for value in held(node, name):
                    writes = by_storage.get(storage(value), ())
                    spoiling = next((write for write in writes if write.spoils(at, value)), None)
                    if spoiling is not None:
                        self._say_spoiled(node, name, where, spoiling, spot, "")

    def _freed(self, roots: list[Any], spot: Spot | None, text: str) -> None:
        """Which earlier backward freed the graph, and what carried it into this one."""
        found = list(nodes(root.grad_fn for root in roots))
        freed = FREED.among(node for node, _ in found)
        for node, via in found:
            if node not in freed:
                continue
            for root in roots:
                root.grad_fn.metadata[AGAIN] = True
            made = node.metadata.get(KEY)
            # What leads to the first one met that is freed is not: it is a graph of its own.
            facts: dict[str, Any] = {"carried": via is not None}
            evidence = [(Role.AGAIN, spot)]
            if facts["carried"] and made is not None:
                evidence.append((Role.CARRIED, made[1]))
            self.state.defect("backward_twice", freed[node][0], evidence, text, facts)
            return


def number(root: Any) -> float | None:
    """A loss as a number, where it is one."""
    return (
        finite(float(root.item()))
        if root is not None and root.numel() == 1 and not root.is_complex()
        else None
    )
