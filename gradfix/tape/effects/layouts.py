"""Whether new memory is contiguous: it decides whether `reshape` and `flatten` of it show it or copy it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import External
from gradfix.tape.effects.operations import where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradfix.tape.domain.values import Shape, Truth, Value
    from gradfix.tape.effects.pieces import Bound

ROW_MAJOR = where("memory", "row-major")
"""Operations whose result is contiguous, in whatever order their inputs are."""
ROW_MAJOR_BY_WEIGHT = where("memory", "row-major-by-weight")
"""The same, where the weight is contiguous."""
SMALL_ROW_MAJOR = where("memory", "row-major-small")
"""The same, for results of few dimensions: images keep their channels last."""
OTHERWISE = where("memory", "column-major", "own-order")
"""Operations whose result may lie otherwise though all that went in is contiguous."""


def of_result(op: str, bound: Bound, operands: Sequence[Value], shape: Shape) -> Truth:
    """Whether what an operation makes is contiguous: most follow the order of what went in."""
    if shape in ((), (1,)):
        return True
    if "memory_format" in bound:
        return of_format(bound["memory_format"])
    if op in ROW_MAJOR:
        return True
    if op in ROW_MAJOR_BY_WEIGHT and "weight" in bound:
        return _is_contiguous(bound["weight"]) or None
    if op in SMALL_ROW_MAJOR and shape is not None and len(shape) < 4:
        return True
    if op in OTHERWISE or not all(_is_contiguous(value) for value in operands):
        return None
    return True


def _is_contiguous(value: Value) -> bool:
    return isinstance(value, Tensor) and (value.layout is True or value.shape == ())


def of_format(given: Value) -> Truth:
    """Whether new memory of this format is contiguous."""
    return True if isinstance(given, External) and given.path == "torch.contiguous_format" else None
