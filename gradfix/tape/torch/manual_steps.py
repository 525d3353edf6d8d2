"""Steps written by hand: a parameter changed by an expression that is made of its gradient."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.events import Add
from gradfix.tape.domain.graph import Tensor, upstream

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Value
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.machine import Machine


def hand_written_step(machine: Machine, tensor: Tensor, args: Args, node: ast.AST) -> None:
    """`w -= lr * w.grad` under no_grad or through `.data` is a step of one parameter."""
    leaf = tensor.data_of or tensor
    mode = machine.grad_mode
    if leaf.leaf is not True or machine.graph.requires(leaf) is not True:
        return
    if tensor.data_of is None and mode.grad is not False:
        if mode.grad is None or mode.mode_in_doubt is not False:
            machine.gradients.updated.append(leaf)
        return
    if any(made_of_gradient(machine.graph, arg, leaf) and not _older(arg, leaf) for arg in args):
        machine.gradients.use(leaf, machine.here.at(node), leaf, must=True, lean=leaf.lean)


def _older(value: Value, leaf: Tensor) -> bool:
    """Whether a value was computed before the newest contribution to a leaf's gradient."""
    adds = [event.born for event in leaf.gradient().events if isinstance(event, Add)]
    made = isinstance(value, Tensor) and value.grad_of is None and not value.storage.writes
    return isinstance(value, Tensor) and made and bool(adds) and value.born < adds[-1]


def made_of_gradient(graph: Graph, value: Value, leaf: Tensor) -> bool:
    behind = upstream(graph.nodes(value))
    return any(node.op == "grad" and (node.facts or {}).get("of") is leaf for node in behind)
