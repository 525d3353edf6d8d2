"""Which elements of its storage a tensor holds: a write beside what was saved spoils nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import torch

Extent: TypeAlias = "tuple[int, int, tuple[tuple[int, int], ...]]"
"""The bytes of an element, the first one, and size and stride of each dimension."""
MOST_ELEMENTS = 100_000_000
MOST_PAIRS = 4096
"""A loop asks for the same two parts again and again, of one storage after the other."""


def extent(value: Any) -> Extent | None:
    """Of a tensor; None where it keeps its elements in another way."""
    try:
        sizes = zip(value.shape, value.stride(), strict=True)
        # A dimension of stride 0 holds one element many times.
        dimensions = tuple((size if stride or not size else 1, stride) for size, stride in sizes)
        return value.element_size(), value.storage_offset(), dimensions
    except (RuntimeError, NotImplementedError):
        return None


def region(target: Any, name: str, args: Any) -> Any:
    """The part of a tensor that a call is about to write, as a view; all of it where that is not known."""
    if name != "__setitem__" or len(args) < 2:
        return target
    try:
        part = target[args[1]]
        return part if part._base is not None and part.data_ptr() else target
    except (RuntimeError, IndexError, TypeError):
        return target


@lru_cache(MOST_PAIRS)
def meet(one: Extent | None, other: Extent | None) -> bool:
    """Whether two parts of one storage have an element in common; True where it can't be told."""
    if one is None or other is None or one[0] != other[0]:
        return True
    if not all(size for _, _, dimensions in (one, other) for size, _ in dimensions):
        return False
    (first, last), (begin, end) = bounds(one), bounds(other)
    if last < begin or end < first:
        return False
    base, most = min(first, begin), max(last, end)
    if most - base >= MOST_ELEMENTS:
        return True
    marks = torch.zeros(most - base + 1, dtype=torch.bool)
    laid(marks, one, base).fill_(True)
    return bool(laid(marks, other, base).any())


def bounds(one: Extent) -> tuple[int, int]:
    """The first and the last element."""
    _, first, dimensions = one
    return first, first + sum((size - 1) * stride for size, stride in dimensions)


def laid(marks: Any, one: Extent, base: int) -> Any:
    """The elements of an extent among the marks."""
    _, first, dimensions = one
    return marks.as_strided(
        [size for size, _ in dimensions], [stride for _, stride in dimensions], first - base
    )
