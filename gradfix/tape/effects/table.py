"""What torch names do to autograd: which tensors they save, write and view, from a table made from torch.

`effects.json` holds one row per distinct effect and, for every name of the Python surface, the rows of its
overloads. `python -m tests.effects.generate` writes it by recording the installed torch; a test compares. A
name that isn't in it is unknown, and the tape says nothing about what it doesn't know. `versions.json` names
what was seen otherwise under older and newer versions: the table claims nothing that not all of them do.

>>> [dict(e.saves) for e in method("relu")]
[{'result': ('self',)}]
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
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
def _versions() -> dict[str, dict[str, list[str]]]:
    versions: dict[str, dict[str, list[str]]] = json.loads(
        Path(__file__).with_name("versions.json").read_bytes()
    )
    return versions


def compared_with() -> tuple[str, ...]:
    """The other versions of torch under which what the table claims was looked at, oldest first."""
    return tuple(_versions())


@cache
def _doubted(surface: str) -> frozenset[str]:
    """The names whose effects are not the same under all of them."""
    return frozenset(name for rows in _versions().values() for name in rows.get(surface, ()))


def _certain(surface: str, name: str, effect: Effect) -> Effect:
    """An effect without what one version does and another one doesn't."""
    if name not in _doubted(surface):
        return effect
    return replace(effect, saves=(), constant=(), vanishes=False, once=False)


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
    rows = _table()[surface].get(name, ())
    return tuple(_certain(surface, name, _effect(row)) for row in rows)


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
        train=_certain("module", name, _effect(row["train"])),
        eval=_certain("module", name, _effect(row["eval"])),
        inplace=_effect(row["inplace"]) if "inplace" in row else None,
    )
