"""The shapes of what gathers elements into fewer: reductions, losses, products, sums over indices."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Const, Value
from gradfix.tape.effects import shapes
from gradfix.tape.effects.operations import ruled, where

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Shape

Bound = Mapping[str, Value]

REDUCTIONS = where("shape", "reduced")
LOSSES = where("shape", "loss", "loss-by-class", "loss-by-row")
BY_CLASS = where("shape", "loss-by-class")
BY_ROW = where("shape", "loss-by-row")


def shape_of(value: Value | None) -> Shape:
    """The shape of a value, if it is a tensor of known shape."""
    return value.shape if isinstance(value, Tensor) else None


def first_of(bound: Bound, *names: str) -> Shape:
    """The shape of the first of these arguments that was given."""
    return shape_of(next((bound[name] for name in names if name in bound), None))


def reduced(op: str, own: Shape, bound: Bound) -> Shape:
    """The shape of a reduction; of `max` and `min` with another tensor, what elementwise would be."""
    other = bound.get("other")
    if op in ("max", "min") and isinstance(other, Tensor):
        return shapes.broadcast([own, other.shape])
    if op in ("std", "var") and isinstance(dim := bound.get("unbiased"), Const) and type(dim.value) is int:
        bound = {"dim": dim, **bound}  # `std(0)` means the dimension, not the correction
    return shapes.reduced(own, bound)


def of_loss(op: str, own: Shape, bound: Bound) -> Shape:
    """One element, or one for each example where nothing is reduced."""
    reduction = bound.get("reduction", Const("mean"))
    how = reduction.value if isinstance(reduction, Const) else ""
    if how in ("mean", "sum", "batchmean"):
        return ()
    return _unreduced(op, own, first_of(bound, "target")) if how == "none" else None


def _unreduced(op: str, own: Shape, aim: Shape) -> Shape:
    if op in BY_CLASS:
        return own[:1] + own[2:] if own else aim
    if op in BY_ROW:
        return None if own is None else own[:1]
    return shapes.broadcast([own, aim])


def _product(own: Shape, bound: Bound) -> Shape:
    return shapes.matmul(own, first_of(bound, "other", "mat2", "tensor", "vec", "tensor2", "vec2"))


def _added_product(own: Shape, bound: Bound) -> Shape:
    one = first_of(bound, "mat1", "mat", "batch1")
    return shapes.matmul(one, first_of(bound, "mat2", "vec", "batch2"))


def _outer(own: Shape, bound: Bound) -> Shape:
    other = first_of(bound, "vec2")
    return None if own is None or other is None else own + other


def _linear(own: Shape, bound: Bound) -> Shape:
    weight = first_of(bound, "weight")
    return None if not own else (*own[:-1], weight[0] if weight else None)


def _summed(own: Shape, bound: Bound) -> Shape:
    """`einsum`: the sizes of the letters behind the arrow."""
    equation = bound.get("equation")
    text = str(equation.value).replace(" ", "") if isinstance(equation, Const) else "?"
    if not re.fullmatch(r"[A-Za-z,]+(->[A-Za-z]*)?", text):
        return None
    left, arrow, right = text.partition("->")
    sizes: dict[str, int | None] = {}
    for i, term in enumerate(left.split(",")):
        shape = first_of(bound, f"operand{i}")
        if shape is not None and len(shape) == len(term):
            sizes.update((one, size) for one, size in zip(term, shape, strict=True) if sizes.get(one, 1) == 1)
    letters = left.replace(",", "")
    kept = right if arrow else "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
    return tuple(sizes.get(letter) for letter in kept)


def _distances(own: Shape, bound: Bound) -> Shape:
    other = first_of(bound, "x2")
    return None if not own or not other else (*own[:-1], other[-2])


def _attended(own: Shape, bound: Bound) -> Shape:
    value = first_of(bound, "value")
    return None if not own or not value else (*own[:-1], value[-1])


def _single(own: Shape, bound: Bound) -> Shape:
    return ()


def _determinant(own: Shape, bound: Bound) -> Shape:
    return None if own is None else own[:-2]


PRODUCTS: Mapping[str, Callable[[Shape, Bound], Shape]] = ruled("shape", {
    "product": _product,
    "added-product": _added_product,
    "outer": _outer,
    "linear": _linear,
    "einsum": _summed,
    "distances": _distances,
    "attended": _attended,
    "single": _single,
    "determinant": _determinant,
})  # fmt: skip
"""Operations by name; the first argument's shape may be unknown."""
