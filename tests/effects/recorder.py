"""Runs one torch call under saved-tensor hooks and says what it saved, wrote, viewed and cut."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
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
    owners: dict[str, list[Tensor]] = field(default_factory=dict)
    """All tensors that went in."""

    def named(self, what: str) -> list[Tensor]:
        """The tensors that go by this name: an argument's or a result's."""
        if what in self.owners:
            return self.owners[what]
        place = what.removeprefix("result")
        return [o for i, o in zip(self.places, self.outputs, strict=True) if not place or place == str(i)]

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
        if any(t.is_floating_point() or t.is_complex() for t in ts) and (n in call.values or n in parameters)
    ]


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr() or -id(tensor)
    except (NotImplementedError, RuntimeError):
        return -id(tensor)


def _fresh(value: Any, requires_grad: bool, sources: list[Tensor]) -> Any:
    """A copy in a storage of its own, same layout; not a leaf where it requires grad, as in a network."""
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


def record(call: Call, pattern: Sequence[str], hooked: bool = True) -> Run:
    """Run it once; `pattern` names what requires grad. Under hooks torch checks no versions."""
    run = Run()
    values: dict[str, Any] = {}
    for name, value in call.values.items():
        values[name] = _fresh(value, name in pattern, run.sources.setdefault(name, []))
    for name, tensor in call.state.items():
        if isinstance(tensor, torch.nn.Parameter):
            tensor.requires_grad_(name in pattern)
            run.sources[name] = [tensor]
    run.owners = owners = {n: tensors_of(v) for n, v in values.items()} | {
        n: [t] for n, t in call.state.items()
    }
    before = {n: [t._version for t in ts] for n, ts in owners.items()}
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t) if hooked else nullcontext()
    with warnings.catch_warnings(), hooks:
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(0)
        result = call.invoke(values)
    placed = _outputs(result)
    run.outputs, run.places = [t for _, t in placed], [i for i, _ in placed]
    run.single = isinstance(result, Tensor)
    run.is_list = isinstance(result, list)
    run.written = {n for n, ts in owners.items() if [t._version for t in ts] != before[n]}
    _name_everything(run, owners, kept)
    return run


def _name_everything(run: Run, owners: Mapping[str, list[Tensor]], kept: Sequence[Tensor]) -> None:
    of_storage: dict[int, str] = {}
    for i, output in zip(run.places, run.outputs, strict=True):
        many = not run.single and not run.is_list
        of_storage.setdefault(_storage(output), f"result{i}" if many else "result")
    for name, tensors in reversed(list(owners.items())):
        for tensor in tensors:
            if not (name in run.written and _storage(tensor) in of_storage):
                of_storage[_storage(tensor)] = name
    for name in {of_storage[_storage(t)] for t in kept if _storage(t) in of_storage}:
        if _share_version(run.named(name), [t for t in kept if of_storage.get(_storage(t)) == name]):
            run.saved.add(name)
    storages = {_storage(t): n for n, ts in reversed(list(owners.items())) for t in ts}
    objects = {id(t): n for n, ts in reversed(list(owners.items())) for t in ts}
    run.shares = [storages.get(_storage(o)) for o in run.outputs]
    run.same = [objects.get(id(o)) for o in run.outputs]


def _share_version(named: Sequence[Tensor], kept: Sequence[Tensor]) -> bool:
    """Does a write to one count as a write to the other? Not where torch made an unsafe view."""
    before = [t._version for t in kept]
    with torch.no_grad(), suppress(RuntimeError):
        for tensor in named:
            tensor.copy_(tensor.clone())
    return [t._version for t in kept] != before


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
    constant = _constant(typical)
    saves: dict[str, list[str]] = {}
    for name, run in singles.items() if constant != [-1] else ():
        for what in run.saved:
            saves.setdefault(what, []).append(name)
    order = list(call.values) + list(call.state)
    vanishes, once = _backward(typical)
    rank = {n: i for i, n in enumerate(order)}
    return Recording(
        saves={w: saves[w] for w in sorted(saves, key=lambda w: (rank.get(w, len(rank)), w))},
        written=typical.written,
        typical=typical,
        constant=constant,
        vanishes=vanishes,
        once=once,
        joint=typical.saved - set(saves) if constant != [-1] else set(),
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
    torch.default_generator.manual_seed(1)
    ones = [torch.randn_like(r) for r in roots]
    try:
        grads: Sequence[Tensor | None] = torch.autograd.grad(roots, sources, ones, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return False, False
    found = [g for g in grads if g is not None]
    finite = all(bool(r.isfinite().all()) for r in roots)
    vanishes = finite and bool(found) and not any(bool(g.to_dense().count_nonzero()) for g in found)
    return vanishes, _is_freed(roots, sources, ones)


def _is_freed(roots: list[Tensor], sources: list[Tensor], ones: list[Tensor]) -> bool:
    try:
        torch.autograd.grad(roots, sources, ones, allow_unused=True)
    except RuntimeError as error:
        return "second time" in str(error)
    return False


def contradictions(call: Call, recording: Recording) -> list[str]:
    """Where torch doesn't do what the recording predicts when a tensor is overwritten before backward."""
    found = []
    for name in recording.names:
        for what in _writable(record(call, [name])):
            fails = _fails_after_write(record(call, [name], hooked=False), what)
            expected = name in recording.saves.get(what, ())
            if fails is not None and fails != expected:
                found.append(f"{what} written, {name} requires grad: {'fails' if fails else 'works'}")
    return found


def _writable(run: Run) -> list[str]:
    """What has a storage of its own: writing a view of an input would be writing the input."""
    shared = {n for n in run.shares if n} | run.written
    many = not run.single and not run.is_list
    placed = zip(run.places, run.shares, strict=True)
    results = {f"result{place}" if many else "result" for place, shared_with in placed if not shared_with}
    written = {"result"} if run.written and run.single else set()
    return [n for n, ts in run.owners.items() if ts and n not in shared] + sorted(results | written)


def _fails_after_write(run: Run, what: str) -> bool | None:
    roots = [o for o in run.outputs if o.requires_grad]
    sources = [s for ts in run.sources.values() for s in ts if s.requires_grad]
    try:
        with torch.no_grad():
            for tensor in run.named(what):
                tensor.copy_(tensor.clone())
        torch.autograd.grad(roots, sources, [torch.ones_like(r) for r in roots], allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        return True if "modified by an inplace operation" in str(error) else None
    return False
