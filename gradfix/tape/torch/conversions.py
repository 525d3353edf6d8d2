"""Tensors converted and moved: cuts by hand, plain values, other dtypes and devices."""

from __future__ import annotations

import ast

from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.values import NONE, Args, Const, External, Kwargs, Unknown, Value
from gradfix.tape.effects.operations import having, told
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.torch.tensors import called

MOVES = having("moves")
CASTS = told("casts")


def detach(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """A tensor over the same memory, outside the graph."""
    return cut_tensor(vm, tensor, "detach", node)


def cut_tensor(vm: Interpreter, tensor: Tensor, how: str, node: ast.AST) -> Tensor:
    """A tensor over the same memory that carries no gradient."""
    made = vm.cut(how, tensor, vm.at(node))
    result = Tensor(made, tensor.storage, False, leaf=True)
    result.view = "loose"
    result.shape, result.dtype, result.layout = tensor.shape, tensor.dtype, tensor.layout
    result.strides = tensor.strides
    result.data_of, result.grad_of = tensor.data_of, tensor.grad_of
    result.counter = tensor.counter
    result.lean = made.lean
    return result


def detach_in_place(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    if vm.inference:
        return tensor  # what it would change isn't kept track of
    made = vm.cut("detach_", tensor, vm.at(node))
    vm.trail.set(tensor, "node", made)
    vm.trail.set(tensor, "requires", False)
    vm.trail.set(tensor, "leaf", True)
    return tensor


def convert(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """Out of the graph, into plain Python or numpy."""
    attribute = called(node, "item")
    return number(vm, tensor, {"__float__": "float"}.get(attribute, attribute), node)


def number(vm: Interpreter, value: Value, how: str, node: ast.AST) -> Number:
    """A plain value converted from a tensor or from another plain value."""
    kinds = {"tolist": "list", "numpy": "array"}
    made = Number(vm.cut(how, value, vm.at(node)), vm.at(node), kinds.get(how, "number"))
    made.shape = value.shape if how in kinds and isinstance(value, Tensor) else None
    return made


def move(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`.cuda()`, `.to(...)`, `.float()`: the tensor itself, or a copy of another dtype or device."""
    name = called(node, "to")
    dtype = CASTS.get(name, "") or _asked_dtype(args, kwargs)
    if _stays(vm, tensor, name, dtype, args, kwargs):
        return tensor
    if name != "cpu":
        vm.moved = True
    made = vm.node("to", vm.at(node), [tensor])
    result = vm.output(made)
    result.shape, result.dtype, result.layout = tensor.shape, dtype or tensor.dtype, tensor.layout or None
    copied = bool(dtype and tensor.dtype and dtype != tensor.dtype) or (name == "cuda" and _on_cpu(tensor))
    result.leaf = (
        tensor.leaf
        if tensor.requires is False
        else (None if tensor.leaf is not False and not copied else False)
    )
    if not copied:
        vm.may_be(result, tensor)
    if dtype in ("int", "bool"):
        made.requires, made.cut, made.cut_place = False, "constant", made.place
        result.requires, result.leaf = False, True
    return result


def _stays(vm: Interpreter, tensor: Tensor, name: str, dtype: str, args: Args, kwargs: Kwargs) -> bool:
    """Whether a tensor is what and where it is asked to be, so that it is given back itself."""
    if dtype and dtype == tensor.dtype == "float" and (name == "float" or (len(args) == 1 and not kwargs)):
        return True
    other = args[0] if len(args) == 1 and not kwargs else None
    if isinstance(other, Unknown):
        return other.origin == "device" and other.holds[0] is tensor
    if other is tensor:
        return True
    here = bool(tensor.dtype) and not vm.moved
    if isinstance(other, Tensor):
        return here and other.dtype == tensor.dtype == "float"
    if isinstance(other, Const):
        return here and name == "to" and other.value == "cpu"
    return name == "cpu" and here and tensor.place is not None and not tensor.node.parents


def _on_cpu(tensor: Tensor) -> bool:
    """Whether a factory made it without being told a device."""
    place = tensor.node.place if tensor.leaf is True else None
    return isinstance(place, ast.Call) and not any(keyword.arg == "device" for keyword in place.keywords)


def _asked_dtype(args: Args, kwargs: Kwargs) -> str:
    for value in (*args, kwargs.get("dtype", NONE)):
        if isinstance(value, External):
            kind = dtype_class(value.path)
            if kind:
                return kind
    return ""


def dtype_class(path: str) -> str:
    """The class of a torch dtype by its dotted name."""
    name = path.rpartition(".")[2]
    if name in ("float", "float32"):
        return "float"
    if name in ("float64", "double"):
        return "double"
    if name in ("half", "float16", "bfloat16"):
        return "half"
    if name in ("int", "int8", "int16", "int32", "int64", "long", "short", "uint8"):
        return "int"
    return "bool" if name == "bool" else ""


def cast(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """A cast to integers or truth values ends the graph."""
    made = vm.cut("constant", tensor, vm.at(node))
    made.op = called(node, "cast")
    result = vm.output(made)
    result.shape, result.dtype = tensor.shape, CASTS.get(made.op, "int")
    result.layout = tensor.layout or None
    return result
