"""What torch names do to autograd: which tensors they save, write and view, from a table made from torch.

`effects.json` holds one row per distinct effect and, for every name of the Python surface, the rows of its
overloads. `tests/generate_effects.py` writes it by recording the installed torch; a test compares. A name
that isn't in it is unknown, and the tape says nothing about what it doesn't know.

>>> [dict(e.saves) for e in method("relu")]
[{'result': ('self',)}]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gradfix.tape.domain.effect import Effect, ModuleEffect

KIND_OF_LETTER = {"t": "tensor", "l": "tensors", "n": "number", "o": "other"}

DUNDERS: Mapping[str, str] = {
    "__abs__": "abs",
    "__add__": "add",
    "__and__": "bitwise_and",
    "__eq__": "eq",
    "__floordiv__": "floor_divide",
    "__ge__": "ge",
    "__gt__": "gt",
    "__iadd__": "add_",
    "__iand__": "bitwise_and_",
    "__ifloordiv__": "floor_divide_",
    "__ilshift__": "bitwise_left_shift_",
    "__imod__": "remainder_",
    "__imul__": "mul_",
    "__invert__": "bitwise_not",
    "__ior__": "bitwise_or_",
    "__ipow__": "pow_",
    "__irshift__": "bitwise_right_shift_",
    "__isub__": "sub_",
    "__itruediv__": "div_",
    "__ixor__": "bitwise_xor_",
    "__le__": "le",
    "__lshift__": "bitwise_left_shift",
    "__lt__": "lt",
    "__matmul__": "matmul",
    "__mod__": "remainder",
    "__mul__": "mul",
    "__ne__": "ne",
    "__neg__": "neg",
    "__or__": "bitwise_or",
    "__pos__": "positive",
    "__pow__": "pow",
    "__radd__": "add",
    "__rmul__": "mul",
    "__rshift__": "bitwise_right_shift",
    "__sub__": "sub",
    "__truediv__": "div",
    "__xor__": "bitwise_xor",
}
"""Operators that are exactly a method. The others (`__getitem__`, `__rsub__`) have rows of their own."""


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_name("effects.json").read_bytes())
    return table


def recorded_with() -> str:
    """The torch version that the table was recorded with."""
    return str(_table()["torch"])


@cache
def _effect(row: int) -> Effect:
    args, kinds, extras = _table()["effects"][row]
    return Effect(
        args=tuple(args.split()),
        kinds=tuple(KIND_OF_LETTER[letter] for letter in kinds),
        saves=tuple((what, tuple(needed_by.split())) for what, needed_by in extras.get("saves", {}).items()),
        writes=tuple(extras.get("writes", "").split()),
        view=extras.get("view", ""),
        returns_self=extras.get("returns_self", ""),
        constant=tuple(extras.get("constant", ())),
        results=extras.get("results", 1),
        vanishes=extras.get("vanishes", False),
        once=extras.get("once", False),
        shape=extras.get("shape", ""),
        needs=extras.get("needs", 1),
        keyword=extras.get("keyword", 0),
        when=tuple(extras.get("when", {}).items()),
    )


@cache
def _overloads(surface: str, name: str) -> tuple[Effect, ...]:
    return tuple(_effect(row) for row in _table()[surface].get(name, ()))


def method(name: str) -> tuple[Effect, ...]:
    """Tensor methods and operators: "add_", "__getitem__"; () is an unknown name."""
    return _overloads("method", DUNDERS.get(name, name))


def function(name: str) -> tuple[Effect, ...]:
    """`torch.<name>`: "einsum", "linalg.norm", "special.expit"."""
    return _overloads("function", name)


def functional(name: str) -> tuple[Effect, ...]:
    """`torch.nn.functional.<name>`, out of place."""
    return _overloads("functional", name)


def functional_inplace(name: str) -> tuple[Effect, ...]:
    """`torch.nn.functional.<name>` with `inplace=True`; () where there is no such parameter."""
    return _overloads("functional_inplace", name)


@cache
def module(name: str) -> ModuleEffect | None:
    """`torch.nn.<name>`: layers, activations and losses; containers are unknown."""
    row = _table()["module"].get(name)
    if row is None:
        return None
    return ModuleEffect(
        init=tuple(row["init"].split()),
        defaults=row["defaults"],
        parameters=tuple(row["parameters"].split()),
        buffers=tuple(row["buffers"].split()),
        train=_effect(row["train"]),
        eval=_effect(row["eval"]),
        inplace=_effect(row["inplace"]) if "inplace" in row else None,
    )
