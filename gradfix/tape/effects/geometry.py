"""The shapes of what reorders, picks, joins and convolves: for each operation, from its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import FALSE, Alt, Const, Seq, asked_shape
from gradfix.tape.effects import pieces, shapes
from gradfix.tape.effects.operations import layers_told, ruled, where
from gradfix.tape.effects.pieces import dim_of, resized

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Shape, Value
    from gradfix.tape.effects.pieces import Bound, Known


def _size(sizes: Known) -> int | None:
    return prod(size for size in sizes if size is not None) if None not in sizes else None


def _swapped(own: Known, bound: Bound) -> Shape:
    one, other = dim_of(bound, "dim0", dim_of(bound, "axis0")), dim_of(bound, "dim1", dim_of(bound, "axis1"))
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


def _moved(own: Known, bound: Bound) -> Shape:
    one, other = dim_of(bound, "source"), dim_of(bound, "destination")
    if one is None or other is None or not own:
        return None
    sizes = list(own)
    sizes.insert(other % len(own), sizes.pop(one % len(own)))
    return tuple(sizes)


def _padded(own: Known, bound: Bound) -> Shape:
    pads = shapes.integers(bound["pad"]) if "pad" in bound else None
    if pads is None or len(pads) > 2 * len(own):
        return (None,) * len(own)
    sizes = list(own)
    for i in range(len(pads) // 2):
        size = sizes[-1 - i]
        sizes[-1 - i] = None if size is None else size + pads[2 * i] + pads[2 * i + 1]
    return tuple(sizes)


def _interleaved(own: Known, bound: Bound) -> Shape:
    count = dim_of(bound, "repeats")
    if "dim" not in bound:
        size = _size(own)
        return (None if size is None or count is None else size * count,)
    dim = dim_of(bound, "dim")
    if dim is None or not own:
        return None
    size = own[dim % len(own)]
    return resized(own, dim % len(own), None if size is None or count is None else size * count)


def _expanded(own: Known, bound: Bound) -> Shape:
    """-1 keeps the size that is there."""
    wanted = asked_shape([bound["size"]]) if "size" in bound else None
    if wanted is None or len(wanted) < len(own):
        return None
    there = (None,) * (len(wanted) - len(own)) + own
    return tuple(old if new == -1 else new for new, old in zip(wanted, there, strict=True))


def _viewed(own: Known, bound: Bound) -> Shape:
    """-1 is what the other sizes leave."""
    wanted = bound.get("size", bound.get("shape"))
    if wanted is None or "dtype" in bound:
        return own if wanted is None else None
    asked = asked_shape([wanted])
    if asked is None:
        return _some(own)
    whole, rest = _size(own), _size(tuple(size for size in asked if size != -1))
    if -1 in asked and (whole is None or not rest):
        return _some(own)
    return tuple(whole // (rest or 1) if size == -1 and whole is not None else size for size in asked)


def _some(own: Known) -> Shape:
    """As many elements, in an order that isn't followed."""
    several = shapes.many(own)
    return None if several is None else ((None, 2) if several else (1,))


def _unflattened(own: Known, bound: Bound) -> Shape:
    sizes, dim = shapes.integers(bound["sizes"]) if "sizes" in bound else None, dim_of(bound, "dim")
    if sizes is None or dim is None or not own:
        return None
    at = dim % len(own)
    return (*own[:at], *(_viewed((own[at],), {"size": bound["sizes"]}) or ()), *own[at + 1 :])


def _pooled(own: Known, bound: Bound) -> Shape:
    return (*own[:2], *(None for _ in own[2:])) if len(own) > 2 else None


def _unsqueezed(own: Known, bound: Bound) -> Shape:
    dim = dim_of(bound, "dim")
    if dim is None:
        return None
    at = dim % (len(own) + 1)
    return (*own[:at], 1, *own[at:])


def _squeezed(own: Known, bound: Bound) -> Shape:
    if "dim" not in bound:
        return None if None in own else tuple(size for size in own if size != 1)
    dim = dim_of(bound, "dim")
    if dim is None or not own or own[dim % len(own)] is None:
        return None
    at = dim % len(own)
    return (*own[:at], *own[at + 1 :]) if own[at] == 1 else own


def _flattened(own: Known, bound: Bound) -> Shape:
    first, last = dim_of(bound, "start_dim", 0), dim_of(bound, "end_dim", -1)
    if first is None or last is None or not own:
        return None
    first, last = first % len(own), last % len(own)
    return (*own[:first], _size(own[first : last + 1]), *own[last + 1 :])


def _compared(own: Known, bound: Bound) -> Shape:
    """Two tensors compared along one dimension."""
    other = next((bound[name] for name in ("x2", "other") if name in bound), None)
    dim = dim_of(bound, "dim", 1)
    both = shapes.broadcast([own, other.shape]) if isinstance(other, Tensor) else None
    return None if both is None or dim is None or dim >= len(both) else both[:dim] + both[dim + 1 :]


def _rolled(own: Known, bound: Bound) -> Shape:
    wanted = shapes.integers(bound["repeats"]) if "repeats" in bound else None
    if wanted is None or len(wanted) < len(own):
        return None
    padded = (1,) * (len(wanted) - len(own)) + own
    return tuple(None if size is None else size * n for size, n in zip(padded, wanted, strict=True))


def _summed(own: Known, bound: Bound) -> Shape:
    return asked_shape([bound["size"]]) if "size" in bound else None


def _transposed(own: Known, bound: Bound) -> Shape:
    return own[::-1]


SHAPES: Mapping[str, Callable[[Known, Bound], Shape]] = ruled("shape", {
    **pieces.RULES,
    "swapped": _swapped,
    "moved": _moved,
    "flattened": _flattened,
    "repeated": _rolled,
    "expanded": _expanded,
    "viewed": _viewed,
    "pooled": _pooled,
    "transposed": _transposed,
    "summed": _summed,
    "permuted": _permuted,
    "unsqueezed": _unsqueezed,
    "squeezed": _squeezed,
    "padded": _padded,
    "interleaved": _interleaved,
    "unflattened": _unflattened,
    "compared": _compared,
})  # fmt: skip
"""Operations by name, for a first argument whose number of dimensions is known."""
ALIKE = where("shape", "alike")
"""Operations whose result is shaped as their first argument."""
AS_OTHER = where("shape", "other")
"""Operations whose result is shaped as another tensor that they are given."""


def of_layer(kind: str, given: Bound, own: Known, which: int) -> Shape:
    """The shape of a layer's result from what it was built with; of several results, of this one."""
    rule = layers_told("shape").get(kind)
    if rule == "alike":
        return own
    if rule in ("convolved", "pooled"):
        return _of_images(rule, kind, given, own)
    if rule == "embedded":
        return (*own, dim_of(given, "embedding_dim"))
    if rule == "unflattened" and "unflattened_size" in given and own:
        sizes, dim = shapes.integers(given["unflattened_size"]), dim_of(given, "dim")
        at = None if dim is None else dim % len(own)
        return None if sizes is None or at is None else (*own[:at], *sizes, *own[at + 1 :])
    if rule == "flattened":
        return _flattened(own, {"start_dim": Const(1), **given})
    if rule == "cell":
        return (*own[:-1], dim_of(given, "hidden_size"))
    return _of_recurrent(given, own, which) if rule == "recurrent" else None


def is_wide(kind: str, given: Bound) -> bool:
    """Whether all that a layer gives has several elements, whatever goes in: as many as its state is wide."""
    wide = layers_told("shape").get(kind) in ("recurrent", "cell") and "proj_size" not in given
    return wide and (dim_of(given, "hidden_size") or 0) > 1


def _of_recurrent(given: Bound, own: Known, which: int) -> Shape:
    """The shape of what a recurrent layer gives for each element, or of the state that it ends in."""
    ways, layers = _ways(given), dim_of(given, "num_layers", 1)
    if "proj_size" in given or len(own) not in (2, 3):
        return None
    width = dim_of(given, "hidden_size")
    if which == 0:
        return (*own[:-1], None if width is None or ways is None else width * ways)
    first = given.get("batch_first", FALSE)
    batch = own[0 if first.value else 1] if isinstance(first, Const) else None
    count = None if ways is None or layers is None else ways * layers
    return (count, *([batch] if len(own) == 3 else []), width)


def _ways(given: Bound) -> int | None:
    both = given.get("bidirectional", FALSE)
    return (2 if both.value else 1) if isinstance(both, Const) else None


def _of_images(rule: str, kind: str, given: Bound, own: Known) -> Shape:
    """What a layer makes of images, of one alone as well: a convolution has channels of its own."""
    dims = int(kind[-2]) if kind.endswith("d") and kind[-2].isdigit() else len(own) - 2
    if len(own) - dims not in (1, 2):
        return None
    sizes = _swept(kind, given, own[len(own) - dims :])
    if rule == "pooled":
        return (*own[: len(own) - dims], *sizes)
    return (*own[: len(own) - dims - 1], dim_of(given, "out_channels"), *sizes)


def _swept(kind: str, given: Bound, own: Known) -> Known:
    """The sizes that a kernel leaves of an image's, where all that it was built with is known."""
    sizes = [_each(given, name, len(own), usual) for name, usual in SWEEPS.items()]
    if "Adaptive" in kind or kind.startswith(("LP", "Fractional")):
        return (None,) * len(own)
    kernel, stride, padding, dilation, more = sizes
    if "Pool" in kind and "stride" not in given:
        stride = kernel
    if kernel is None or stride is None or padding is None or dilation is None or more is None:
        return (None,) * len(own)
    rows = zip(own, kernel, stride, padding, dilation, more, strict=True)
    if "Transpose" in kind:
        return tuple(
            None if n is None else (n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, d, m in rows
        )
    exact = "ceil_mode" not in given and "padding_mode" not in given
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 if n is not None and exact and s > 0 else None
        for n, k, s, p, d, _ in rows
    )


SWEEPS = {"kernel_size": None, "stride": 1, "padding": 0, "dilation": 1, "output_padding": 0}
"""What a layer that sweeps over images is built with, and what it is where nothing is said."""


def _each(given: Bound, name: str, dims: int, usual: int | None) -> list[int] | None:
    """An argument that is one number for each dimension, or one for all."""
    if name not in given:
        return None if usual is None else [usual] * dims
    numbers = shapes.integers(given[name])
    if numbers is None or len(numbers) not in (1, dims):
        return None
    return numbers * dims if len(numbers) == 1 else numbers


def stacked(bound: Bound) -> Shape:
    """The shape of `torch.stack`: the items are alike, so one whose shape is known is enough."""
    dim, given = dim_of(bound, "dim", 0), bound.get("tensors")
    if not isinstance(given, Seq):
        return None
    known = [shape for shape in map(shape_of, given.items) if shape is not None]
    if dim is None or not known:
        return None
    at = dim % (len(known[0]) + 1)
    count = None if given.open else len(given.items)
    return (*known[0][:at], count, *known[0][at:])


def concatenated(bound: Bound) -> Shape:
    """The shape of `torch.cat`."""
    given, dim = bound.get("tensors"), dim_of(bound, "dim", 0)
    if not isinstance(given, Seq) or given.open or dim is None:
        return None
    return shapes.joined([shape_of(item) for item in given.items], dim)


def shape_of(value: Value) -> Shape:
    """The shape of a tensor, whichever of its alternatives it is."""
    if isinstance(value, Alt):
        first, *others = (shape_of(option) for _, option in value.options)
        return first if all(other == first for other in others) else None
    return value.shape if isinstance(value, Tensor) else None


JOINS: Mapping[str, Callable[[Bound], Shape]] = ruled("shape", {"stacked": stacked, "joined": concatenated})
"""Operations on several tensors, by name."""
