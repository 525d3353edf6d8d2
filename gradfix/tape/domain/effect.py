"""What one operation does to autograd, as data: which tensors it saves, writes, views and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """What one overload does. Names in it are parameter names, or "result" ("result0", ... of a tuple)."""

    args: tuple[str, ...]
    """In positional order, then the keyword-only ones; for a method the first is "self"."""
    kinds: tuple[str, ...]
    """For each argument: "tensor", "tensors", "number" or "other" (bool, str, dtype, list of numbers)."""
    saves: tuple[tuple[str, tuple[str, ...]], ...]
    """(what, needed_by): kept for backward if at least one argument in needed_by requires grad."""
    writes: tuple[str, ...] = ()
    """Arguments written in place, so that their version goes up."""
    view: str = ""
    """Of the first tensor argument: "" never, "always", "maybe", "many" (several views of one tensor)."""
    returns_self: str = ""
    """Is the result the written (or the first) tensor itself: "" never, "always", "maybe"."""
    constant: tuple[int, ...] = ()
    """Outputs that carry no gradient; (-1,) is all of them."""
    results: int = 1
    """How many tensors come back; 0 is a list of unknown length."""
    vanishes: bool = False
    """The derivative is zero everywhere."""
    once: bool = False
    """Backward through it a second time fails: the first one frees what it kept, if only a number."""
    shape: str = ""
    """"elementwise": the tensors' broadcast shape; "reduction": one element unless an argument says else."""
    needs: int = 1
    """How many of the first arguments must be given for this overload to be meant."""
    keyword: int = 0
    """How many of the last arguments can be given by keyword only."""
    when: tuple[tuple[str, bool], ...] = ()
    """Flags under which this row holds, where one flag changes the effect: (("training", True),)."""


@dataclass(frozen=True, slots=True)
class ModuleEffect:
    """How an nn module is built and what its forward does; "weight" in its effects is its own parameter."""

    init: tuple[str, ...]
    defaults: Mapping[str, object]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    train: Effect
    eval: Effect
    inplace: Effect | None
