"""What `torch.autograd.grad` returns: gradients with a graph of their own, or constants."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Storage, Tensor
from gradfix.tape.domain.values import FALSE, NONE, Const, Seq, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.interpreter.inside import open_ended
from gradfix.tape.machine.cuts import ASKED, DIFFERENTIATED

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Kwargs, Value
    from gradfix.tape.machine.machine import Machine

OTHERWISE = frozenset({"create_graph", "allow_unused", "is_grads_batched", "materialize_grads"})
"""The options with which it isn't known what comes out."""


def gradients(machine: Machine, outputs: Value, options: Kwargs, node: ast.Call) -> Value:
    """A gradient for each input: without `create_graph=True` a constant, cut off from what it was made of."""
    inputs = options.get("inputs", NONE)
    named = inputs.items if isinstance(inputs, Seq) and not inputs.open else [inputs]
    tensors = [one for one in named if isinstance(one, Tensor)]
    if len(tensors) == len(named) and not OTHERWISE & options.keys() and not open_ended(options, node):
        return Seq("tuple", [_constant(machine, outputs, one, node) for one in tensors])
    create = options.get("create_graph", FALSE)
    result = Unknown(Why(What.COMPUTED, "gradients"), (outputs,))
    if isinstance(create, Const) and not open_ended(options, node):
        result.requires = bool(create.value) and machine.graph.requires(outputs)
    if result.requires is True:
        result.made = machine.graph.guess(result)
        result.made.op = DIFFERENTIATED
    return result


def _constant(machine: Machine, outputs: Value, asked: Tensor, node: ast.Call) -> Tensor:
    """The gradient of one input."""
    made = machine.graph.cut(ASKED, outputs, machine.here.at(node))
    result = Tensor(made, Storage(), False, leaf=True)
    result.shape, result.dtype, result.lean = asked.shape, asked.dtype, made.lean
    return result
