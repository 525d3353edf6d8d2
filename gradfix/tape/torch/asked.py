"""What `torch.autograd.grad` returns: gradients with a graph of their own, or constants."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Storage, Tensor, upstream
from gradfix.tape.domain.values import FALSE, NONE, Const, Seq, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.effects.operations import having, where
from gradfix.tape.interpreter.inside import open_ended
from gradfix.tape.machine.cuts import ASKED, DIFFERENTIATED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Kwargs, Truth, Value
    from gradfix.tape.machine.machine import Machine

OTHERWISE = frozenset({"allow_unused", "is_grads_batched", "materialize_grads"})
"""The options with which it isn't known what comes out."""
PRODUCTS = where("shape", "product")
"""Operations of two operands that are the slope of each other."""
LAYERS = having("layered")
"""Those whose second operand is a weight, and that may have more."""


def gradients(machine: Machine, outputs: Value, options: Kwargs, node: ast.Call) -> Value:
    """A gradient for each input: without `create_graph=True` a constant, cut off from what it was made of."""
    inputs = options.get("inputs", NONE)
    named = inputs.items if isinstance(inputs, Seq) and not inputs.open else [inputs]
    tensors = [one for one in named if isinstance(one, Tensor)]
    create = options.get("create_graph", FALSE)
    known = isinstance(create, Const) and not open_ended(options, node)
    whole = known and len(tensors) == len(named) and not OTHERWISE & options.keys()
    if whole and "create_graph" not in options:
        return Seq("tuple", [_constant(machine, outputs, one, node) for one in tensors])
    requires = known and isinstance(create, Const) and bool(create.value) and machine.graph.requires(outputs)
    if whole and requires is True and all(_sloped(machine, outputs, one) for one in tensors):
        return Seq("tuple", [_recorded(machine, outputs, one) for one in tensors])
    return _unheard(machine, outputs, requires if known else None)


def _unheard(machine: Machine, outputs: Value, requires: Truth) -> Unknown:
    """Gradients of which nothing is known but whether they have a graph."""
    result = Unknown(Why(What.COMPUTED, "gradients"), (outputs,))
    result.requires = requires
    if requires is True:
        result.made = machine.graph.guess(result)
        result.made.op = DIFFERENTIATED
    return result


def _recorded(machine: Machine, outputs: Value, asked: Tensor) -> Tensor:
    """The gradient of one input, with a graph of its own."""
    made = machine.graph.guess(_unheard(machine, outputs, True))
    result = Tensor(made, Storage(argument=True), True, leaf=None)
    result.shape, result.dtype = asked.shape, asked.dtype
    return result


def _sloped(machine: Machine, outputs: Value, asked: Tensor) -> bool:
    """Whether a gradient surely is a product with what itself requires one: a layer's weight, say."""
    end = machine.graph.history(asked)
    between = list(_walked(machine.graph.nodes(outputs)))
    if end not in between or any(one.may or one.guards is not None for one in between):
        return False
    return any(end in _walked([way]) for one in between for way in _multiplied(one))


def _walked(nodes: Iterable[Node]) -> Iterator[Node]:
    return upstream(nodes, lambda one: () if one.cut or one.requires is not True else one.parents)


def _multiplied(node: Node) -> list[Node]:
    """The operands of a product whose slope requires grad. What nothing is known of has no node here, so
    that a weight is known by its place among all of three, or by its shape."""
    if len(node.parents) < 2 or node.requires is not True:
        return []
    first, second, *more = node.parents
    if node.op in LAYERS:
        weight = second.leaf
        placed = weight is not None and (len(more) == 1 or len(weight.shape or ()) > 1)
        return [first] if placed and weight is not None and weight.requires is True else []
    pairs = [(first, second), (second, first)] if node.op in PRODUCTS and not more else []
    return [one for one, other in pairs if other.requires is True]


def _constant(machine: Machine, outputs: Value, asked: Tensor, node: ast.Call) -> Tensor:
    """The gradient of one input."""
    made = machine.graph.cut(ASKED, outputs, machine.here.at(node))
    result = Tensor(made, Storage(), False, leaf=True)
    result.shape, result.dtype, result.lean = asked.shape, asked.dtype, made.lean
    return result
