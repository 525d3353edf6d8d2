"""The strides of views, where all sizes are known: they decide whether `reshape` and `flatten` copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Const, Seq, Slice
from gradfix.tape.effects import shapes
from gradfix.tape.effects.geometry import SHAPES
from gradfix.tape.effects.operations import ruled, where
from gradfix.tape.effects.pieces import bounds_of, dim_of, spelt_out

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.effects.pieces import Bound

Sizes: TypeAlias = "tuple[int, ...]"
Strides: TypeAlias = "tuple[int, ...] | None"

REORDERED = where("stride", "reordered")
"""Views whose strides change as their sizes do."""
SAME = where("stride", "same")
RESHAPED = where("stride", "reshaped")


def known(shape: Sequence[int | None] | None) -> Sizes | None:
    """A shape of which everything is known, and nothing is empty."""
    if shape is None:
        return None
    sizes = tuple(size for size in shape if size)
    return sizes if len(sizes) == len(shape) else None


def dense(sizes: Sizes) -> Sizes:
    """The strides of a contiguous tensor."""
    strides, step = [0] * len(sizes), 1
    for i in reversed(range(len(sizes))):
        strides[i] = step
        step *= sizes[i]
    return tuple(strides)


def of(tensor: Tensor) -> Strides:
    """A tensor's strides, as far as they are known."""
    if tensor.strides is None and tensor.layout is True:
        sizes = known(tensor.shape)
        return None if sizes is None else dense(sizes)
    return tensor.strides


def is_dense(sizes: Sizes, strides: Sizes) -> bool:
    """Whether a tensor with these strides is contiguous."""
    wanted = dense(sizes)
    return all(size == 1 or strides[i] == wanted[i] for i, size in enumerate(sizes))


def repeated(own: Sequence[int | None] | None, new: Sequence[int | None] | None) -> bool:
    """Whether a view of larger sizes shows something several times for sure."""
    if own is None or new is None or len(new) < len(own):
        return False
    there = [1] * (len(new) - len(own)) + list(own)
    return any(old == 1 and size is not None and size > 1 for old, size in zip(there, new, strict=True))


def looks(tensor: Tensor, strides: Strides) -> None:
    """Give a view its strides, and what follows from them."""
    sizes = known(tensor.shape)
    if sizes is None or strides is None or len(sizes) != len(strides):
        return
    tensor.strides = strides
    tensor.layout = is_dense(sizes, strides)


def of_view(op: str, source: Tensor, bound: Bound, wanted: Sequence[int | None] | None) -> Strides:
    """The strides of a view with the wanted sizes; None where they aren't known or there is no such view."""
    sizes, strides, new = known(source.shape), of(source), known(wanted)
    if sizes is None or strides is None or new is None:
        return None
    if op in REORDERED:
        moved = SHAPES[op](strides, bound)
        return None if moved is None else tuple(step or 0 for step in moved)
    if op in SAME:
        return strides
    if op in RESHAPED:
        return None if op == "ravel" and not is_dense(sizes, strides) else reshaped(sizes, strides, new)
    rule = RULES.get(op)
    return rule(sizes, strides, bound, new) if rule is not None else None


def reshaped(sizes: Sizes, strides: Sizes, new: Sizes) -> Strides:
    """The strides that show the same memory in other sizes, if there are any: as torch computes them."""
    steps: list[int] = []
    at = len(new) - 1
    base, whole, viewed = strides[-1] if strides else 1, 1, 1
    for i in reversed(range(len(sizes))):
        whole *= sizes[i]
        if i > 0 and (sizes[i - 1] == 1 or strides[i - 1] == whole * base):
            continue
        while at >= 0 and (viewed < whole or new[at] == 1):
            steps.insert(0, viewed * base)
            viewed *= new[at]
            at -= 1
        if viewed != whole:
            return None
        if i > 0:
            base, whole, viewed = strides[i - 1], 1, 1
    return (*([1] * (at + 1)), *steps) if at < 0 or not sizes else None


def _expanded(sizes: Sizes, strides: Sizes, bound: Bound, new: Sizes) -> Strides:
    """What is repeated has stride 0."""
    added = len(new) - len(sizes)
    kept = (strides[i] if sizes[i] == new[i + added] else 0 for i in range(len(sizes)))
    return (*([0] * added), *kept)


def _windowed(sizes: Sizes, strides: Sizes, bound: Bound, new: Sizes) -> Strides:
    dim, step = dim_of(bound, "dimension"), dim_of(bound, "step")
    if dim is None or step is None or not sizes:
        return None
    at = dim % len(sizes)
    return (*strides[:at], strides[at] * step, *strides[at + 1 :], strides[at])


def _given(sizes: Sizes, strides: Sizes, bound: Bound, new: Sizes) -> Strides:
    given = shapes.integers(bound["stride"]) if "stride" in bound else None
    return None if given is None else tuple(given)


def _diagonal(sizes: Sizes, strides: Sizes, bound: Bound, new: Sizes) -> Strides:
    one, other = dim_of(bound, "dim1", 0), dim_of(bound, "dim2", 1)
    if one is None or other is None:
        return None
    pair = (one % len(sizes), other % len(sizes))
    rest = (step for i, step in enumerate(strides) if i not in pair)
    return (*rest, strides[pair[0]] + strides[pair[1]])


RULES: Mapping[str, Callable[[Sizes, Sizes, Bound, Sizes], Strides]] = ruled("stride", {
    "expanded": _expanded,
    "windowed": _windowed,
    "given": _given,
    "diagonal": _diagonal,
})  # fmt: skip
POINTWISE = where("memory", "agreed")
"""Operations whose result lies in memory in the order that their operands agree on."""


def of_pointwise(bound: Bound, wanted: Sequence[int | None] | None) -> Strides:
    """The strides of new memory: dense, with the dimensions sorted as torch sorts them."""
    sizes, operands = known(wanted), list[Sizes]()
    for value in bound.values() if sizes else ():
        if isinstance(value, Tensor):
            one, steps = known(value.shape), of(value)
            if one is None or steps is None:
                return None
            operands.append(_broadcast(one, steps, sizes or ()))
        elif not isinstance(value, Const):
            return None
    if sizes is None or not operands:
        return None
    result, step = [0] * len(sizes), 1
    for dim in _sorted(sizes, operands):
        result[dim] = step
        step *= sizes[dim]
    return tuple(result)


def _broadcast(own: Sizes, strides: Sizes, sizes: Sizes) -> Sizes:
    """An operand's strides in the dimensions of the result: 0 where it is repeated."""
    added = len(sizes) - len(own)
    kept = (0 if size == 1 and sizes[added + i] != 1 else strides[i] for i, size in enumerate(own))
    return (*([0] * added), *kept)


def _sorted(sizes: Sizes, operands: Sequence[Sizes]) -> list[int]:
    """The dimensions, fastest first: the last one, unless an operand has it otherwise."""
    order = list(reversed(range(len(sizes))))
    for i in range(1, len(order)):
        later = i
        for earlier in reversed(range(i)):
            verdict = _slower(order[earlier], order[later], sizes, operands)
            if verdict is False:
                break
            if verdict is True:
                order[earlier], order[later] = order[later], order[earlier]
                later = earlier
    return order


def _slower(one: int, other: int, sizes: Sizes, operands: Sequence[Sizes]) -> bool | None:
    """Whether the first operand that tells has larger steps in one dimension than in another."""
    for strides in operands:
        if strides[one] and strides[other]:
            if strides[one] != strides[other]:
                return strides[one] > strides[other]
            if sizes[one] > sizes[other]:
                return True
    return None


def of_index(source: Tensor, key: Value) -> Strides:
    """The strides of `x[key]` where that is a view."""
    strides = of(source)
    if strides is None:
        return None
    keys = key.items if isinstance(key, Seq) and key.kind == "tuple" else [key]
    rest, result = list(strides), list[int]()
    for one in spelt_out(keys, len(strides)):
        if isinstance(one, Const) and one.value is None:
            result.append(1)
        elif isinstance(one, Slice) and rest and (bounds := bounds_of(one)) is not None:
            result.append(rest.pop(0) * (bounds.step or 1))
        elif rest and not isinstance(one, Slice):
            rest.pop(0)
        else:
            return None
    return (*result, *rest)
