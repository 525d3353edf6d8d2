"""What a tensor is asked about its memory: how it lies there, whether it was made in inference mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.values import FALSE, TRUE, Const, Seq
from gradfix.tape.effects import strides
from gradfix.tape.machine.refused import of_inference, repeats
from gradfix.tape.torch.tensors import property_call

if TYPE_CHECKING:
    import ast

    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.machine.machine import Machine


def is_contiguous(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`x.is_contiguous()`."""
    told = args or kwargs  # in another order of memory
    if not told and repeats(tensor):
        return FALSE
    if not told and tensor.layout is not None and tensor.maybe is None:
        return Const(tensor.layout)
    return property_call(machine, tensor, args, kwargs, node)


def stride(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`x.stride()`."""
    steps = None if args or kwargs or tensor.maybe is not None else strides.of(tensor)
    if steps is not None:
        return Seq("tuple", [Const(step) for step in steps])
    return property_call(machine, tensor, args, kwargs, node)


def is_inference(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`x.is_inference()`."""
    if of_inference(tensor, machine.here.path):
        return TRUE
    tensor.storage.inference = None  # who asks isn't sure either
    return property_call(machine, tensor, args, kwargs, node)
