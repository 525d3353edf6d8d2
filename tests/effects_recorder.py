"""Runs one torch call under saved-tensor hooks and says what it saved, wrote, viewed and cut."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Values = Mapping[str, Any]
Invoke = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Call:
    """A callable with a value for each of its arguments that the sample sets."""

    values: Values
    invoke: Invoke
    state: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors that the callable holds itself: the parameters and buffers of a module."""


@dataclass
class Run:
    """What one call did for one pattern of inputs that require grad."""

    saved: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    outputs: list[Tensor] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """For each output its place in the result: an LSTM's states share the second."""
    single: bool = True
    is_list: bool = False
    shares: list[str | None] = field(default_factory=list)
    """For each output the name of the input whose storage it has."""
    same: list[str | None] = field(default_factory=list)
    """For each output the name of the input that it is."""
    sources: dict[str, list[Tensor]] = field(default_factory=dict)
    """The tensors whose gradients say which inputs count."""

    def differentiable(self) -> list[bool]:
        return [o.requires_grad for o in self.outputs]


def tensors_of(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors_of(item)]
    return []


def differentiable_names(call: Call) -> list[str]:
    """Arguments, then parameters, that can require grad."""
    named = {n: tensors_of(v) for n, v in call.values.items()} | {n: [t] for n, t in call.state.items()}
    parameters = {n for n, t in call.state.items() if isinstance(t, torch.nn.Parameter)}
    return [
        n
        for n, ts in named.items()
        if any(t.is_floating_point() or t.is_complex() for t in ts)
        and (n in call.values or n in parameters)
    ]


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr() or -id(tensor)
    except (NotImplementedError, RuntimeError):
        return -id(tensor)


def _fresh(value: Any, requires_grad: bool, sources: list[Tensor]) -> Any:
    """A copy with its own storage and the same layout; not a leaf where it requires grad, as in a real network."""
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        if not (requires_grad and (copy.is_floating_point() or copy.is_complex())):
            return copy
        sources.append(copy.requires_grad_())
        return copy.clone()
    if type(value) in (list, tuple):
        return type(value)(_fresh(item, requires_grad, sources) for item in value)
    return value


def _outputs(result: Any) -> list[tuple[int, Tensor]]:
    items = result if isinstance(result, (list, tuple)) else [result]
    return [(i, t) for i, item in enumerate(items) for t in tensors_of(item)]


def record(call: Call, pattern: Sequence[str]) -> Run:
    """Run it once; `pattern` names what requires grad."""
    run = Run()
    values: dict[str, Any] = {}
    for name, value in call.values.items():
        values[name] = _fresh(value, name in pattern, run.sources.setdefault(name, []))
    for name, tensor in call.state.items():
        if isinstance(tensor, torch.nn.Parameter):
            tensor.requires_grad_(name in pattern)
            run.sources[name] = [tensor]
    owners = {n: tensors_of(v) for n, v in values.items()} | {n: [t] for n, t in call.state.items()}
    before = {n: [t._version for t in ts] for n, ts in owners.items()}
    kept: list[tuple[Tensor, int]] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append((tensor, tensor._version))
        return tensor

    with warnings.catch_warnings(), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        result = call.invoke(values)
    placed = _outputs(result)
    run.outputs, run.places = [t for _, t in placed], [i for i, _ in placed]
    run.single = isinstance(result, Tensor)
    run.is_list = isinstance(result, list)
    run.written = {n for n, ts in owners.items() if [t._version for t in ts] != before[n]}
    _name_everything(run, owners, kept)
    return run


def _name_everything(run: Run, owners: Mapping[str, list[Tensor]], kept: Sequence[tuple[Tensor, int]]) -> None:
    of_storage: dict[int, str] = {}
    for i, output in zip(run.places, run.outputs, strict=True):
        many = not run.single and not run.is_list
        of_storage.setdefault(_storage(output), f"result{i}" if many else "result")
    for name, tensors in reversed(owners.items()):
        for tensor in tensors:
            if not (name in run.written and _storage(tensor) in of_storage):
                of_storage[_storage(tensor)] = name
    run.saved = {of_storage[_storage(t)] for t, _ in kept if _storage(t) in of_storage}
    storages = {_storage(t): n for n, ts in reversed(owners.items()) for t in ts}
    objects = {id(t): n for n, ts in reversed(owners.items()) for t in ts}
    run.shares = [storages.get(_storage(o)) for o in run.outputs]
    run.same = [objects.get(id(o)) for o in run.outputs]


@dataclass
class Recording:
    """All patterns of one call, summed up."""

    saves: dict[str, list[str]]
    written: set[str]
    typical: Run
    constant: list[int]
    vanishes: bool
    once: bool
    """A second backward fails: the first one freed something that the node kept."""
    joint: set[str]
    """Saved only when two inputs require grad at once: can't be said with needed_by."""
    names: list[str]


def observe(call: Call) -> Recording:
    """Every input alone, then all together."""
    singles = {n: run for n in differentiable_names(call) if (run := _tolerated(call, n)) is not None}
    names = list(singles)
    typical = record(call, names)
    saves: dict[str, list[str]] = {}
    for name, run in singles.items():
        for what in run.saved:
            saves.setdefault(what, []).append(name)
    order = list(call.values) + list(call.state)
    vanishes, once = _backward(typical)
    rank = {n: i for i, n in enumerate(order)}
    return Recording(
        saves={w: saves[w] for w in sorted(saves, key=lambda w: (rank.get(w, len(rank)), w))},
        written=typical.written,
        typical=typical,
        constant=_constant(typical),
        vanishes=vanishes,
        once=once,
        joint=typical.saved - set(saves),
        names=names,
    )


def _tolerated(call: Call, name: str) -> Run | None:
    """None where torch refuses a gradient for this input, as for the running mean of a batch norm."""
    try:
        return record(call, [name])
    except (RuntimeError, NotImplementedError):
        record(call, ())
        return None


def _constant(run: Run) -> list[int]:
    flags = run.differentiable()
    if not any(flags):
        return [-1]
    alive = {place for place, flag in zip(run.places, flags, strict=True) if flag}
    return sorted(set(run.places) - alive)


def _backward(run: Run) -> tuple[bool, bool]:
    """Whether every gradient is zero, and whether there is only one backward."""
    roots = [o for o in run.outputs if o.requires_grad and o.grad_fn is not None]
    sources = [s for ts in run.sources.values() for s in ts if s.requires_grad]
    if not roots or not sources or not any(r.numel() for r in roots):
        return False, False
    torch.manual_seed(1)
    ones = [torch.randn_like(r) for r in roots]
    try:
        grads = torch.autograd.grad(roots, sources, ones, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return False, False
    found = [g for g in grads if g is not None]
    vanishes = bool(found) and all(not bool(g.to_dense().count_nonzero()) for g in found)
    return vanishes, _is_freed(roots, sources, ones)


def _is_freed(roots: list[Tensor], sources: list[Tensor], ones: list[Tensor]) -> bool:
    try:
        torch.autograd.grad(roots, sources, ones, allow_unused=True)
    except RuntimeError as error:
        return "second time" in str(error)
    return False
