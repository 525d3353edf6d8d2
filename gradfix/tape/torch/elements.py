"""What a loop over a value meets."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import alternatives, spelt_out
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.graph import Storage, Tensor
from gradfix.tape.domain.narrowing import there
from gradfix.tape.domain.torch_values import Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import Alt, Const, Map, Range, Seq, Undefined, Unknown
from gradfix.tape.domain.why import BEGUN, INDEX, Why, fact
from gradfix.tape.torch.modules import may_hold_more
from gradfix.tape.torch.tensors import method_call

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter

EXACT = 4
"""Loops of at most so many turns are run exactly, as long as the elements differ or the count is known."""
FEW = 16
"""The most parameters of a module that a loop visits one by one; more are visited as a group."""
MANY = 64
"""The most elements of a known container that a loop visits one by one."""


def told_apart(source: Value) -> Value:
    """A container that lacks elements on some paths: what it is on each, where these are few."""
    if isinstance(source, Seq):
        held, kind = source.items, source.kind
    elif isinstance(source, Layer) and source.items is not None:
        held, kind = list(source.items.values()), "list"
    else:
        return source
    if all(map(there, held)):
        return source
    ways = [(path, Seq(kind, items, source.open, some=some_of(source))) for path, items in spelt_out(held)]
    return (
        alternatives([*ways])
        if ways
        else Unknown(Why(What.ELEMENT, "a list that may lack elements"), tuple(held))
    )


def elements(vm: Interpreter, source: Value, node: ast.AST) -> tuple[list[Value] | None, bool]:
    """What a loop over a value meets, and whether that is known; None for no idea."""
    if isinstance(source, Seq):
        items = [item for item in source.items if not isinstance(item, Undefined)]
        if source.open:
            return ([*items, twin(items[0])] if len(items) == 1 else _not_in_a_row(items)) or None, False
        return items, True
    if isinstance(source, Range):
        return [Const(i) for i in source.range[: MANY if len(source.range) <= EXACT else 2]], True
    if isinstance(source, Map):
        return (None, False) if source.open else ([Const(key) for key in source.items], True)
    if isinstance(source, Layer) and source.items is not None:
        inside = list(source.items.values())
        return (_not_in_a_row(inside) or None if source.open else inside), not source.open
    if isinstance(source, Weights) and source.complete and 0 < len(source.leaves) <= FEW:
        found: list[Value] = list(source.leaves)
        if source.named:
            found = [Seq("tuple", [Unknown(fact("a parameter's name")), leaf]) for leaf in found]
        return found, not may_hold_more(source.of)
    if isinstance(source, Weights):
        group = Weights(source.of, source.leaves, source.complete)
        group.met = vm.here.path
        one: Value = Seq("tuple", [Unknown(fact("a parameter's name")), group]) if source.named else group
        return [one], True
    if isinstance(source, Tensor):
        return _rows(vm, source, node)
    return None, False


def some_of(*sources: Value) -> bool:
    """Whether any of them holds only what a test lets through that isn't known."""
    return any(isinstance(source, Seq) and source.some for source in sources)


def gone_through(trail: Trail, source: Value, whole: bool = True) -> None:
    """What a generator had has been taken, unless that ended early."""
    if isinstance(source, Seq) and source.kind == "generator":
        trail.set(source, "items", [])
        if not whole:
            trail.set(source, "open", True)


def _not_in_a_row(items: list[Value]) -> list[Value]:
    """What a loop over a list meets that may hold more: after the first module, it isn't known which."""
    if len(items) < 2 or not all(isinstance(one, (Layer, Opaque)) or _is_module(one) for one in items):
        return items
    more = Unknown(Why(What.ELEMENT, "a module of a list that may hold more"))
    return [items[0], more, *filter(_is_module, items[1:])]


def _is_module(item: Value) -> bool:
    return isinstance(item, Instance) and bool(item.module)


def twin(item: Value) -> Value:
    """Another element of the same making: a tensor of its own memory, an object that isn't this one."""
    if isinstance(item, (Instance, Layer, Optimizer)):
        other_object = Unknown(Why(What.ELEMENT, "another object of the same making"), (item,))
        other_object.part = True
        return other_object
    if isinstance(item, Seq):
        return Seq(item.kind, [twin(one) for one in item.items], item.open, item.place)
    if not isinstance(item, Tensor) or item.base is not None or item.view or item.leaf is True:
        return item
    other = Tensor(item.node, Storage(), item.requires, item.leaf)
    other.shape, other.dtype, other.layout, other.lean = item.shape, item.dtype, item.layout, item.lean
    return other


def _rows(vm: Interpreter, source: Tensor, node: ast.AST) -> tuple[list[Value], bool]:
    """Iterating a tensor unbinds it."""
    rows = method_call(vm, source, "unbind", [], {}, node)
    if isinstance(rows, Seq):
        return list(rows.items), not rows.open
    return [part(source), part(source)], False


def part(source: Value) -> Value:
    """One element of something whose elements aren't known."""
    if isinstance(source, Unknown):
        piece = Unknown(Why(What.ELEMENT, "part", None, source.why), (source,))
        piece.part = True
        piece.lean = source.lean
        if source.requires is False:
            piece.requires = False
        return piece
    element = Unknown(
        Why(What.ELEMENT, "an element"), (source,) if not isinstance(source, (Range, Const)) else ()
    )
    element.part = isinstance(source, Alt)
    return element


def any_two(source: Value) -> list[Value]:
    """The first element of something whose elements aren't known, and a later one."""
    start = source.holds[0] if isinstance(source, Unknown) and source.why is BEGUN else None
    if isinstance(start, Const) and isinstance(start.value, int):
        assert isinstance(source, Unknown)
        return [start, index(start.value + 1, source.offset)]
    return [part(source), part(source)]


def index(least: int, end: tuple[Hashable, int] | None = None) -> Unknown:
    """A number that isn't known, but at least so much, and the last before the end of a count."""
    found = Unknown(INDEX)
    found.least = least
    if end is not None:
        found.offset = end[0], end[1] - 1
    return found


def length(source: Value) -> Unknown:
    """How many elements something has of which that isn't known: the same while nothing is put into it."""
    found = Unknown(fact("a length"))
    start = source.holds[0] if isinstance(source, Unknown) and source.why is BEGUN else None
    if (
        isinstance(source, Unknown)
        and source.offset
        and isinstance(start, Const)
        and type(start.value) is int
    ):
        found.offset = source.offset[0], source.offset[1] - start.value
        return found
    held = getattr(source, "items", None)
    found.offset = (source, "length", len(held) if held is not None else 0), 0
    return found
