"""The shapes of what reorders, picks, joins and convolves: for each operation, from its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from gradfix.tape import shapes
from gradfix.tape.graph import Tensor
from gradfix.tape.values import Const, Seq, Shape, Value

Bound = Mapping[str, Value]
Known = tuple["int | None", ...]
"""A shape of which at least the number of dimensions is known."""


def _dim(bound: Bound, name: str, default: int | None = None) -> int | None:
    value = bound.get(name)
    if value is None:
        return default
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def _size(sizes: Known) -> int | None:
    return prod(size for size in sizes if size is not None) if None not in sizes else None


def _swapped(own: Known, bound: Bound) -> Shape:
    one, other = _dim(bound, "dim0"), _dim(bound, "dim1")
    if one is None or other is None or not all(-len(own) <= dim < len(own) for dim in (one, other)):
        return None
    sizes = list(own)
    sizes[one], sizes[other] = sizes[other], sizes[one]
    return tuple(sizes)


def _permuted(own: Known, bound: Bound) -> Shape:
    order = shapes.integers(bound["dims"]) if "dims" in bound else None
    if order is None or not own or sorted(d % len(own) for d in order) != list(range(len(own))):
        return None
    return tuple(own[d % len(own)] for d in order)


def _unsqueezed(own: Known, bound: Bound) -> Shape:
    dim = _dim(bound, "dim")
    if dim is None:
        return None
    at = dim % (len(own) + 1)
    return (*own[:at], 1, *own[at:])


def _squeezed(own: Known, bound: Bound) -> Shape:
    if "dim" not in bound:
        return None if None in own else tuple(size for size in own if size != 1)
    dim = _dim(bound, "dim")
    if dim is None or not own or own[dim % len(own)] is None:
        return None
    at = dim % len(own)
    return (*own[:at], *own[at + 1 :]) if own[at] == 1 else own


def _flattened(own: Known, bound: Bound) -> Shape:
    first, last = _dim(bound, "start_dim", 0), _dim(bound, "end_dim", -1)
    if first is None or last is None or not own:
        return None
    first, last = first % len(own), last % len(own)
    return (*own[:first], _size(own[first : last + 1]), *own[last + 1 :])


def _without(own: Known, bound: Bound) -> Shape:
    dim = _dim(bound, "dim", 0)
    return None if dim is None or not own else own[: dim % len(own)] + own[dim % len(own) + 1 :]


def _parted(own: Known, bound: Bound) -> Shape:
    """A part of several: as long as all but the last are."""
    dim, count = _dim(bound, "dim", 0), _dim(bound, "chunks")
    names = ("split_size_or_sections", "split_size", "split_sizes")
    wanted = {size for name in names if name in bound for size in shapes.integers(bound[name]) or ()}
    if dim is None or not own:
        return None
    whole, at = own[dim % len(own)], dim % len(own)
    length = next(iter(wanted)) if len(wanted) == 1 else whole // count if whole and count else None
    if whole is None or not length or whole % length:
        length = None
    return (*own[:at], length, *own[at + 1 :])


def _as_index(own: Known, bound: Bound) -> Shape:
    index = bound.get("index")
    return index.shape if isinstance(index, Tensor) else None


def _compared(own: Known, bound: Bound) -> Shape:
    """Two tensors compared along one dimension."""
    other = next((bound[name] for name in ("x2", "other") if name in bound), None)
    dim = _dim(bound, "dim", 1)
    both = shapes.broadcast([own, other.shape]) if isinstance(other, Tensor) else None
    return None if both is None or dim is None or dim >= len(both) else _without(both, {"dim": Const(dim)})


def _looked_up(own: Known, bound: Bound) -> Shape:
    """The rows of an embedding's weight."""
    indices = bound.get("indices", bound.get("input"))
    weight = bound.get("weight")
    if not isinstance(indices, Tensor) or indices.shape is None or not isinstance(weight, Tensor):
        return None
    return (*indices.shape, weight.shape[-1] if weight.shape else None)


def _rolled(own: Known, bound: Bound) -> Shape:
    wanted = shapes.integers(bound["repeats"]) if "repeats" in bound else None
    if wanted is None or len(wanted) < len(own):
        return None
    padded = (1,) * (len(wanted) - len(own)) + own
    return tuple(None if size is None else size * n for size, n in zip(padded, wanted, strict=True))


SHAPES: Mapping[str, Callable[[Known, Bound], Shape]] = {
    "transpose": _swapped,
    "swapaxes": _swapped,
    "permute": _permuted,
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "flatten": _flattened,
    "ravel": _flattened,
    "unbind": _without,
    "select": _without,
    "chunk": _parted,
    "split": _parted,
    "split_with_sizes": _parted,
    "gather": _as_index,
    "take_along_dim": _as_index,
    "cosine_similarity": _compared,
    "embedding": _looked_up,
    "repeat": _rolled,
    "sort": lambda own, bound: own,
    "cumsum": lambda own, bound: own,
    "batch_norm": lambda own, bound: own,
    "layer_norm": lambda own, bound: own,
    "group_norm": lambda own, bound: own,
    "instance_norm": lambda own, bound: own,
    "prelu": lambda own, bound: own,
}
"""Operations by name, for a first argument whose number of dimensions is known."""


def of_layer(kind: str, given: Bound, own: Known, which: int) -> Shape:
    """The shape of a layer's result from what it was built with; of several results, of this one."""
    if kind.startswith(("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "PReLU", "Dropout")):
        return own
    if kind.startswith(("Conv", "LazyConv")) and len(own) > 1:
        return (own[0], _dim(given, "out_channels"), *(None for _ in own[2:]))
    if "Pool" in kind or kind.startswith("Upsample"):
        return (*own[:2], *(None for _ in own[2:]))
    if kind == "Embedding":
        return (*own, _dim(given, "embedding_dim"))
    if kind == "Unflatten" and "unflattened_size" in given and own:
        sizes, dim = shapes.integers(given["unflattened_size"]), _dim(given, "dim")
        at = None if dim is None else dim % len(own)
        return None if sizes is None or at is None else (*own[:at], *sizes, *own[at + 1 :])
    if kind == "Flatten":
        return _flattened(own, {"start_dim": Const(1), **given})
    if kind in ("RNNCell", "GRUCell", "LSTMCell"):
        return (*own[:-1], _dim(given, "hidden_size"))
    if kind in ("RNN", "GRU", "LSTM") and which == 0 and not {"bidirectional", "proj_size"} & set(given):
        return (*own[:-1], _dim(given, "hidden_size"))
    return None


def stacked(given: Seq, bound: Bound) -> Shape:
    """The shape of `torch.stack`: the items are alike, so one whose shape is known is enough."""
    dim = _dim(bound, "dim", 0)
    known = [item.shape for item in given.items if isinstance(item, Tensor) and item.shape is not None]
    if dim is None or not known or len(given.items) == 0:
        return None
    at = dim % (len(known[0]) + 1)
    count = None if given.open else len(given.items)
    return (*known[0][:at], count, *known[0][at:])
