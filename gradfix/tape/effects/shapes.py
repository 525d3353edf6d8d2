"""Light shape inference: enough to tell one element from many, and a float from an integer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

from gradfix.tape.domain.values import Const, Seq

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Shape, Truth, Value


def many(shape: Shape) -> Truth:
    """Whether a tensor of this shape has more than one element."""
    if shape is None:
        return None
    if any(size is not None and size > 1 for size in shape):
        return None if 0 in shape else True
    return None if None in shape or 0 in shape else False


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of an elementwise result."""
    if not shapes or all(shape == shapes[0] for shape in shapes):
        return shapes[0] if shapes else ()
    if None in shapes:
        return None
    length = max((len(shape or ()) for shape in shapes), default=0)
    return tuple(_widest([_size(shape or (), i - length) for shape in shapes]) for i in range(length))


def _size(shape: Sequence[int | None], i: int) -> int | None:
    return shape[i] if -i <= len(shape) else 1


def _widest(sizes: Sequence[int | None]) -> int | None:
    wide = [size for size in sizes if size != 1]
    known = [size for size in wide if size is not None]
    return known[0] if known else (None if wide else 1)


def reduced(shape: Shape, bound: Mapping[str, Value]) -> Shape:
    """The shape after a reduction over `dim`, all of it where none is given."""
    dim = bound.get("dim", bound.get("axis"))
    keep = bound.get("keepdim")
    if dim is None or (isinstance(dim, Const) and dim.value is None):
        return ()
    dims = integers(dim)
    if shape is None or dims is None or (keep is not None and not isinstance(keep, Const)):
        return None
    gone = {d % len(shape) if shape else 0 for d in dims}
    if isinstance(keep, Const) and keep.value:
        return tuple(1 if i in gone else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in gone)


def integers(value: Value) -> list[int] | None:
    """A constant integer or a sequence of them."""
    if isinstance(value, Const):
        return [value.value] if isinstance(value.value, int) else None
    if isinstance(value, Seq) and not value.open and len(value.items) <= 16:
        found = [integers(item) for item in value.items]
        return [i for item in found for i in item] if all(item is not None for item in found) else None  # type: ignore[union-attr]
    return None


def counted(bounds: Sequence[object]) -> int | None:
    """How many numbers `arange` gives for these bounds."""
    numbers = [bound for bound in bounds if isinstance(bound, (int, float))]
    if len(numbers) < len(bounds) or not 0 < len(numbers) < 4 or 0 in numbers[2:]:
        return None
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    return max(0, ceil((stop - start) / step))


def literal_dtype(value: Value) -> str:
    """The dtype class of `torch.tensor(value)`."""
    if isinstance(value, Const):
        names = {bool: "bool", int: "int", float: "float", complex: "float"}
        return names.get(type(value.value), "")
    if isinstance(value, Seq) and not value.open and value.items:
        kinds = {literal_dtype(item) for item in value.items}
        for kind in ("", "float", "int", "bool"):
            if kind in kinds:
                return kind
    return ""


def matmul(left: Shape, right: Shape) -> Shape:
    """The shape of a matrix product."""
    if left is None or right is None or not left or not right:
        return None
    if len(left) == 1 and len(right) == 1:
        return ()
    if len(right) == 1:
        return left[:-1]
    if len(left) == 1:
        return right[:-2] + right[-1:]
    return left[:-1] + right[-1:]


def joined(shapes: Sequence[Shape], dim: int) -> Shape:
    """The shape of a concatenation."""
    first = shapes[0] if shapes else None
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes) or not first:
        return None
    if not -len(first) <= dim < len(first):
        return None
    along = [shape[dim] for shape in shapes if shape is not None]
    total = sum(size for size in along if size is not None) if None not in along else None
    return tuple(total if i == dim % len(first) else size for i, size in enumerate(first))


def promoted(dtypes: Sequence[str]) -> str:
    """The dtype class of an elementwise result."""
    for kind in ("", "double", "float", "half", "int", "bool"):
        if kind in dtypes:
            return kind
    return ""
