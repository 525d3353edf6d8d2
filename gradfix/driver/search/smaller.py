"""What takes too long, with smaller numbers: given ones and defaults alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradfix.driver.search.drafts import Draft
from gradfix.driver.search.sources import parameters
from gradfix.driver.values import Argument, Items, Number, Tensor, Value

WIDE, MANY, PICTURE = 32, 4, 64


def smaller(draft: Draft, function: Any) -> Iterator[Draft]:
    """All numbers that are large, at once: what was divisible stays so, mostly."""
    for by in (4, 16):
        changed = draft.changed(
            {path: small for path, value in draft.leaves() if (small := shrunk(value, by)) != value}, 3
        )
        if draft.build is not None:
            changed = replace(changed, build=(*(changed.build or ()), *_defaults(draft, function, by)))
        yield changed


def _defaults(draft: Draft, function: Any, by: int) -> Iterator[Argument]:
    given = {one.name for one in draft.build or ()}
    for name, one in parameters(function).items():
        value = of_plain(one.default)
        if name not in given and value is not None and shrunk(value, by) != value:
            yield Argument(name, shrunk(value, by))


def of_plain(default: Any) -> Value | None:
    """A default as a value: a number, or a list of numbers."""
    if type(default) is int:
        return Number(default)
    if isinstance(default, (list, tuple)) and default and all(type(one) is int for one in default):
        return Items(tuple(map(Number, default)), "list" if isinstance(default, list) else "tuple")
    return None


def shrunk(value: Value, by: int) -> Value:
    """The same with smaller numbers."""
    if isinstance(value, Items):
        return replace(value, items=tuple(shrunk(one, by) for one in value.items))
    if isinstance(value, Number) and type(value.value) is int:
        return Number(less(value.value, by))
    if isinstance(value, Tensor) and len(value.shape) >= 4 and value.shape[-1] > PICTURE:
        return replace(value, shape=(min(value.shape[0], 2), *value.shape[1:-2], PICTURE, PICTURE))
    if isinstance(value, Tensor) and value.shape and value.shape[0] > 2:
        return replace(value, shape=(2, *value.shape[1:]))
    return value


def less(number: int, by: int) -> int:
    """A width by so many times; of layers a few."""
    if number >= WIDE:
        return max(number // by, 8)
    return 2 if MANY < number < WIDE and number % 8 else number
