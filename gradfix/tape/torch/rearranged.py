"""`einops.rearrange`: a reshape, a permutation and a reshape, of which only the last one may have to copy."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Const
from gradfix.tape.effects.operations import told
from gradfix.tape.effects.patterns import parsed

if TYPE_CHECKING:
    import ast

    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.effects.patterns import Axis, Pattern
    from gradfix.tape.machine.machine import Machine

REARRANGE = "einops.rearrange"
IMAGES = told("images")


def rearranged(machine: Machine, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """What a function of einops makes of a tensor."""
    source = args[0]
    assert isinstance(source, Tensor)
    text = kwargs.get("pattern", args[1] if len(args) > 1 else None)
    pattern = parsed(text.value if isinstance(text, Const) and isinstance(text.value, str) else "")
    rearranges = path == REARRANGE and pattern.names is not None
    if rearranges and pattern.same:
        return source
    made = machine.recording.node(path.rpartition(".")[2], machine.here.at(node), args)
    result = machine.results.output(made)
    result.layout, result.dtype = None, source.dtype
    if rearranges:
        result.shape = _shape(pattern, source, kwargs)
    if rearranges and all(
        _adjoin(pattern, source, one) for group in pattern.merges for one in pairwise(group)
    ):
        machine.results.look(result, source, "plain")
    else:
        machine.results.may_be(result, source)
    return result


def _adjoin(pattern: Pattern, source: Tensor, pair: tuple[Axis, Axis]) -> bool:
    """Whether two axes can be merged where they lie: the second follows on the first one in memory."""
    (_, dim, piece), (_, other, next_piece) = pair
    if dim == other:
        return next_piece == piece + 1
    names = pattern.names or ()
    if other != dim + 1 or piece != len(names[dim]) - 1 or next_piece != 0:
        return False
    return _follows(source, other, pattern.rank)


def _follows(source: Tensor, dim: int, rank: int | None) -> bool:
    """Whether a dimension and the one before it lie as one in memory for sure."""
    if source.layout is True:
        return True
    if rank is None:
        return False
    facts = source.node.facts or {}
    if "along" in facts:  # one of several pieces: all but the dimension that was cut lies as it did
        return dim != facts["along"] % rank and _follows(facts["whole"], dim, rank)
    return dim > rank - int(IMAGES.get(source.node.op, 0))


def _shape(pattern: Pattern, source: Tensor, kwargs: Kwargs) -> tuple[int | None, ...] | None:
    """The sizes of the result, as far as those of the axes are known."""
    if pattern.rank is None or pattern.names is None:
        return None
    sizes: dict[str, int | None] = {}
    own = source.shape if source.shape is not None and len(source.shape) == pattern.rank else None
    for dim, group in enumerate(pattern.names):
        whole = own[dim] if own is not None else None
        said = {one: given.value for one in group if isinstance(given := kwargs.get(one), Const)}
        left = [one for one in group if one not in said]
        if len(left) == 1:
            rest = _product([said.get(one) for one in group if one in said])
            sizes[left[0]] = whole // rest if whole is not None and rest else None
        sizes.update((one, size if isinstance(size, int) else None) for one, size in said.items())
    return tuple(_product([sizes.get(one) for one in group]) for group in pattern.to)


def _product(sizes: list[object]) -> int | None:
    """The product of whole numbers; None where one isn't known."""
    result = 1
    for size in sizes:
        if type(size) is not int:
            return None
        result *= size
    return result
