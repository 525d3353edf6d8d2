"""What torch names do to autograd: which tensors they save, write and view, from a table made from torch.

`effects.json` holds one row per distinct effect and, for every name of the Python surface, the rows of its
overloads. `python -m tests.effects.generate` writes it by recording the installed torch; a test compares. A
name that isn't in it is unknown, and the tape says nothing about what it doesn't know.

>>> [dict(e.saves) for e in method("relu")]
[{'result': ('self',)}]
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from gradfix.tape.domain.effect import Effect, ModuleEffect
from gradfix.tape.effects.operations import DUNDERS

KIND_OF_LETTER = {"t": "tensor", "l": "tensors", "n": "number", "o": "other"}


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


def names(surface: str) -> Collection[str]:
    """All that is recorded of a surface: "method", "function", "functional", "module" ..."""
    recorded: Collection[str] = _table()[surface].keys()
    return recorded


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
