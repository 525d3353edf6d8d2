"""All that a program holds, by the names that lead to it."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

Array: TypeAlias = "np.ndarray[Any, Any]"
Values: TypeAlias = "dict[str, Array]"
DEEPEST = 5
BESIDE = ("training", "inplace")
"""How a module works, which no value shows."""


def array(value: Any) -> Array | None:
    """A tensor's or a number's value as it is now."""
    if isinstance(value, (bool, int, float)):
        return np.asarray(float(value))
    if not isinstance(value, torch.Tensor) or value.is_sparse or value.is_quantized:
        return None
    try:
        return value.detach().resolve_conj().cpu().numpy().copy()
    except (RuntimeError, TypeError, NotImplementedError):
        return None


def same(one: Array, other: Array) -> bool:
    """Whether no more than rounding tells two values apart."""
    return one.shape == other.shape and bool(np.allclose(one, other, 1e-4, 1e-6, equal_nan=True))


@dataclass
class Held:
    """One look around: values by name, and the names of tensors."""

    values: Values = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    """The variables that hold a value themselves."""

    def look(self, name: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, (torch.Tensor, bool, int, float)):
            self.put(name, value)
            self.own |= {name} if depth == 0 else set()
        elif depth < DEEPEST and id(value) not in self.seen:
            parts = list(within(value))
            if parts:
                self.seen.add(id(value))
            for part, each in parts:
                self.look(f"{name}.{part}", each, depth + 1)

    def put(self, name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor) and self.names.get(id(value), name) != name:
            return  # it has a name already
        kept = array(value)
        if kept is not None and name not in self.values:
            self.values[name] = kept
        if isinstance(value, torch.Tensor):
            self.names.setdefault(id(value), name)


def within(value: Any) -> Iterator[tuple[str, Any]]:
    """What a container, a module or an object of the program holds."""
    if isinstance(value, (list, tuple)):
        yield from ((str(place), each) for place, each in enumerate(value))
    elif isinstance(value, dict):
        yield from ((str(key), each) for key, each in value.items() if isinstance(key, (str, int)))
    elif isinstance(value, nn.Module):
        for kept in (value._parameters, value._buffers, value._modules):
            yield from ((name, each) for name, each in kept.items() if each is not None)
        yield from ((n, each) for n, each in vars(value).items() if not n.startswith("_") and n not in BESIDE)
    elif type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        yield from vars(value).items()


def around(frames: Iterable[types.FrameType], globals_: Mapping[str, Any]) -> Held:
    """What the names of a module and of the functions that run in it lead to, outermost first."""
    held = Held()
    for name, value in list(globals_.items()):
        if not name.startswith("__"):
            held.look(name, value)
    for frame in frames:
        if frame.f_locals is not globals_:
            for name, value in list(frame.f_locals.items()):
                held.look(f"{frame.f_code.co_name}.{name}", value)
    return held
