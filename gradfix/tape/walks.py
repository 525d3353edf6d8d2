"""Calls that walk the graph: `loss.backward()`, `torch.autograd.backward`, `torch.autograd.grad`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gradfix.tape.batches import severed_but_for_batches
from gradfix.tape.events import Backward, Met
from gradfix.tape.graph import Tensor
from gradfix.tape.interpreter import Interpreter
from gradfix.tape.supposed import filled
from gradfix.tape.tensors import special
from gradfix.tape.torchvalues import Weights
from gradfix.tape.values import NONE, NOTHING, Args, Const, Kwargs, Seq, Value


@special("backward")
def backward(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`loss.backward(gradient, retain_graph, create_graph, inputs)`."""
    return run_backward(vm, tensor, _options(args, kwargs), node)


def _options(args: Args, kwargs: Kwargs) -> dict[str, Value]:
    names = ("gradient", "retain_graph", "create_graph", "inputs")
    if "retain_variables" in kwargs:  # its name in the first releases of torch
        kwargs = {**kwargs, "retain_graph": kwargs["retain_variables"]}
    return {
        **dict(zip(names, args, strict=False)),
        **{name: value for name, value in kwargs.items() if name in names},
    }


def run_backward(
    vm: Interpreter, tensor: Tensor, options: Mapping[str, Value], node: ast.AST, met: Met | None = None
) -> Value:
    """One backward call, however it is spelt; `met` is what the other roots of the same call have walked."""
    retain = options.get("retain_graph", NONE)
    create = options.get("create_graph", NONE)
    keeps: bool | None = False
    for option in (retain, create) if retain is NONE else (retain,):
        if not isinstance(option, Const):
            keeps = None
        elif option.value:
            keeps = True
    gradient = options.get("gradient", NONE)
    only: list[Tensor] | None = None
    if "inputs" in options:
        only = tensors_in(vm, options["inputs"])
    event = Backward(vm.at(node), vm.path, keeps, virtual=False, lean=NOTHING)
    event.met = event.met if met is None else met
    vm.backward(tensor, event, whole=gradient is NONE, only=only)
    filled(vm, event, tensor)
    severed_but_for_batches(vm, tensor, event)
    vm.trail.clock += 1
    return NONE


def tensors_in(vm: Interpreter, value: Value) -> list[Tensor]:
    """The tensors that a value holds."""

    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Weights):
        return value.leaves
    if isinstance(value, Seq):
        return [tensor for item in value.items for tensor in tensors_in(vm, item)]
    return []
