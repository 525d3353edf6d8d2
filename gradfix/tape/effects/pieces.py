"""The shapes of parts of a tensor: rows, slices, windows, diagonals, what an index picks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.values import NONE, Const, Range, Seq, Shape, Slice, Value, asked_shape
from gradfix.tape.effects import shapes

Bound = Mapping[str, Value]
Known = tuple["int | None", ...]
"""A shape of which at least the number of dimensions is known."""


PICKED = -1
"""Stands where the sizes of what lists and tensors pick will be."""
SIZES = ("split_size_or_sections", "split_size", "split_sizes")
"""What the sizes of parts are called."""


def dim_of(bound: Bound, name: str, default: int | None = None) -> int | None:
    """An argument that is a known whole number."""
    value = bound.get(name)
    if value is None:
        return default
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def resized(own: Known, at: int, size: int | None) -> Known:
    """A shape with another size in one place."""
    return (*own[:at], size, *own[at + 1 :])


def _narrowed(own: Known, bound: Bound) -> Shape:
    dim = dim_of(bound, "dim")
    return None if dim is None or not own else resized(own, dim % len(own), dim_of(bound, "length"))


def _windowed(own: Known, bound: Bound) -> Shape:
    """`x.unfold(dim, size, step)`: windows along a dimension, each in a new last one."""
    dim, size, step = (dim_of(bound, name) for name in ("dimension", "size", "step"))
    if dim is None or not own:
        return None
    whole = own[dim % len(own)]
    count = (whole - size) // step + 1 if whole is not None and size is not None and step else None
    return (*resized(own, dim % len(own), count), size)


def _diagonal(own: Known, bound: Bound) -> Shape:
    offset, one, other = dim_of(bound, "offset", 0), dim_of(bound, "dim1", 0), dim_of(bound, "dim2", 1)
    if one is None or other is None or len(own) < 2:
        return None
    rows, columns = own[one % len(own)], own[other % len(own)]
    rest = [size for i, size in enumerate(own) if i not in (one % len(own), other % len(own))]
    if rows is None or columns is None or offset is None:
        return (*rest, None)
    return (*rest, max(0, min(rows + min(offset, 0), columns - max(offset, 0))))


def _diag(own: Known, bound: Bound) -> Shape:
    offset = dim_of(bound, "diagonal", 0)
    if len(own) == 2:
        return _diagonal(own, {"offset": Const(offset)})
    if len(own) != 1:
        return None
    side = None if offset is None or own[0] is None else own[0] + abs(offset)
    return (side, side)


def _halved(own: Known, bound: Bound) -> Shape:
    dim = dim_of(bound, "dim", -1)
    if dim is None or not own:
        return None
    size = own[dim % len(own)]
    return resized(own, dim % len(own), None if size is None else size // 2)


def _selected(own: Known, bound: Bound) -> Shape:
    dim, index = dim_of(bound, "dim"), bound.get("index")
    if dim is None or not own:
        return None
    count = index.shape[0] if isinstance(index, Tensor) and index.shape else None
    return resized(own, dim % len(own), count)


def _topmost(own: Known, bound: Bound) -> Shape:
    dim = dim_of(bound, "dim", -1)
    return None if dim is None or not own else resized(own, dim % len(own), dim_of(bound, "k"))


def _along(own: Known, bound: Bound) -> Shape:
    """What is found along one dimension, the last by default."""
    return shapes.reduced(own, {"dim": Const(-1), **bound})


def _without(own: Known, bound: Bound) -> Shape:
    dim = dim_of(bound, "dim", 0)
    return None if dim is None or not own else own[: dim % len(own)] + own[dim % len(own) + 1 :]


def _parted(own: Known, bound: Bound) -> Shape:
    """One of several parts: `which` of them, where that is known."""
    dim, which = dim_of(bound, "dim", 0), dim_of(bound, "which")
    if dim is None or not own:
        return None
    lengths = _even(own[dim % len(own)], dim_of(bound, "sections")) or _lengths(own[dim % len(own)], bound)
    if which is None or which >= len(lengths):
        return resized(own, dim % len(own), lengths[0] if len(set(lengths)) == 1 else None)
    return resized(own, dim % len(own), lengths[which])


def _even(whole: int | None, sections: int | None) -> list[int]:
    """The lengths of `tensor_split`: the first ones are longer by one where it doesn't come out even."""
    if not whole or not sections or sections < 0:
        return []
    return [whole // sections + (i < whole % sections) for i in range(sections)]


def _lengths(whole: int | None, bound: Bound) -> list[int]:
    """How long the parts are; nothing where that isn't known."""
    given = next((bound[name] for name in SIZES if name in bound), None)
    if isinstance(given, Seq):
        return shapes.integers(given) or []
    chunks = dim_of(bound, "chunks")
    step = given.value if isinstance(given, Const) and type(given.value) is int else 0
    step = -(-whole // chunks) if whole and chunks else step
    return [min(step, whole - at) for at in range(0, whole, step)] if whole and step > 0 else []


def _as_index(own: Known, bound: Bound) -> Shape:
    index = bound.get("index")
    return index.shape if isinstance(index, Tensor) else None


def _looked_up(own: Known, bound: Bound) -> Shape:
    """The rows of an embedding's weight."""
    indices = bound.get("indices", bound.get("input"))
    weight = bound.get("weight")
    if not isinstance(indices, Tensor) or indices.shape is None or not isinstance(weight, Tensor):
        return None
    return (*indices.shape, weight.shape[-1] if weight.shape else None)


def count(op: str, bound: Bound) -> int:
    """How many parts come back; 0 where that isn't known."""
    source = next((bound[name] for name in ("self", "tensor", "input") if name in bound), None)
    own, dim = source.shape if isinstance(source, Tensor) else None, dim_of(bound, "dim", 0)
    size = own[dim] if own and dim is not None and -len(own) <= dim < len(own) else None
    if op.startswith("unbind"):
        return size or 0
    if op == "tensor_split":
        return len(_even(size, dim_of(bound, "sections")))
    chunks = dim_of(bound, "chunks")
    if chunks:
        return -(-size // -(-size // chunks)) if size else chunks
    given = next((bound[name] for name in SIZES if name in bound), None)
    if isinstance(given, Seq):
        return 0 if given.open else len(given.items)
    length = given.value if isinstance(given, Const) and type(given.value) is int else 0
    return -(-size // length) if size and length > 0 else 0


def indexed(shape: Shape, key: Value) -> Shape:
    """The shape of `x[key]`."""
    if shape is None:
        return None
    keys = key.items if isinstance(key, Seq) and key.kind == "tuple" else [key]
    rest, result, picked = list(shape), list[int | None](), list[Shape]()
    for one in spelt_out(keys, len(shape)):
        taken = _taken(one)
        if taken is None or taken > len(rest):
            return None
        if isinstance(one, Slice):
            result.append(_sliced(rest[0], one))
        elif one is NONE:
            result.append(1)
        elif not _is_number(one):
            picked.append(_index_shape(one))
            result += [] if len(picked) > 1 else [PICKED]
            if result[-1] != PICKED:
                return None
        del rest[:taken]
    return _filled(result, shapes.broadcast(picked)) + tuple(rest) if picked else (*result, *rest)


def spelt_out(keys: Sequence[Value], rank: int) -> list[Value]:
    """The keys with as many whole slices as `...` stands for."""
    at = next((i for i, one in enumerate(keys) if isinstance(one, Const) and one.value is ...), None)
    if at is None:
        return list(keys)
    missing = rank - sum(_taken(one) or 0 for one in keys)
    return [*keys[:at], *(Slice(NONE, NONE, NONE) for _ in range(missing)), *keys[at + 1 :]]


def _is_number(key: Value) -> bool:
    return isinstance(key, Number) or (isinstance(key, Const) and type(key.value) is int)


def _taken(key: Value) -> int | None:
    """How many dimensions an index goes through."""
    if isinstance(key, Const) and (key.value is None or key.value is ...):
        return 0
    if isinstance(key, Tensor):
        whole = key.shape is not None and key.dtype == "bool"
        return len(key.shape or ()) if whole else (1 if key.dtype == "int" else None)
    return 1 if isinstance(key, (Slice, Seq, Range)) or _is_number(key) else None


def _index_shape(key: Value) -> Shape:
    """The shape of what a list or tensor picks."""
    if isinstance(key, Range):
        return (len(key.range),)
    kind = key.dtype if isinstance(key, Tensor) else shapes.literal_dtype(key)
    return (None,) if kind == "bool" else literal(key)


def _filled(sizes: Sequence[int | None], picked: Shape) -> Known:
    """The sizes with those of what was picked in their place; one that isn't known if they aren't."""
    at = list(sizes).index(PICKED)
    return (*sizes[:at], *((None,) if picked is None else picked), *sizes[at + 1 :])


def _sliced(size: int | None, key: Slice) -> int | None:
    bounds = bounds_of(key)
    if bounds == slice(None):
        return size
    if size is None or bounds is None:
        return None
    return len(range(size)[bounds])


def bounds_of(key: Slice) -> slice | None:
    """The slice that Python makes of it, where all of it is known and Python takes it."""
    known = [part.value for part in (key.lower, key.upper, key.step) if isinstance(part, Const)]
    if len(known) < 3 or known[2] == 0 or not all(one is None or isinstance(one, int) for one in known):
        return None
    lower, upper, step = known
    return slice(lower, upper, step)


def sized(own: Known, bound: Bound) -> Shape:
    """The sizes that are asked for; what isn't known may be one of them or all."""
    asked = asked_shape([bound["size"]]) if "size" in bound else None
    return None if asked == (None,) else asked


def _hot(own: Known, bound: Bound) -> Shape:
    """A one among so many for each index; -1 is what the largest index says."""
    number = dim_of(bound, "num_classes")
    return (*own, number if number is not None and number > 0 else None)


RULES: Mapping[str, Callable[[Known, Bound], Shape]] = {
    "without": _without,
    "parted": _parted,
    "indexed": _as_index,
    "along": _along,
    "narrowed": _narrowed,
    "sized": sized,
    "hot": _hot,
    "windowed": _windowed,
    "diagonal": _diagonal,
    "diag": _diag,
    "halved": _halved,
    "selected": _selected,
    "topmost": _topmost,
    "looked-up": _looked_up,
}
"""How the shapes of pieces follow from a first argument whose number of dimensions is known."""


def literal(value: Value) -> Shape:
    """The shape of `torch.tensor(value)`."""
    if isinstance(value, Const):
        return ()
    if isinstance(value, Seq) and not value.open and value.items:
        inner = literal(value.items[0])
        return None if inner is None else (len(value.items), *inner)
    if isinstance(value, Tensor):
        return value.shape
    return None
