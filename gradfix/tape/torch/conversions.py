"""Tensors converted and moved: cuts by hand, plain values, other dtypes and devices."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.values import FALSE, NONE, Const, External, Unknown
from gradfix.tape.effects.layouts import of_format
from gradfix.tape.effects.operations import having, told
from gradfix.tape.interpreter.inside import open_ended
from gradfix.tape.interpreter.occasions import ArrayAsked
from gradfix.tape.machine.cuts import made_unrecorded
from gradfix.tape.machine.relied_upon import refuses
from gradfix.tape.torch.tensors import called

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.leaves import Leaves
    from gradfix.tape.machine.machine import Machine

MOVES = having("moves")
CASTS = told("casts")


def detach(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """A tensor over the same memory, outside the graph."""
    return cut_tensor(machine, tensor, "detach", node)


def cut_tensor(machine: Machine, tensor: Tensor, how: str, node: ast.AST) -> Tensor:
    """A tensor over the same memory that carries no gradient."""
    made = machine.graph.cut(how, tensor, machine.here.at(node))
    result = Tensor(made, tensor.storage, False, leaf=True)
    result.view = "loose"
    result.shape, result.dtype, result.layout = tensor.shape, tensor.dtype, tensor.layout
    result.strides = tensor.strides
    result.data_of, result.grad_of = tensor.data_of, tensor.grad_of
    result.counter = tensor.counter
    result.lean = made.lean
    return result


REFUSED = "torch doesn't detach views in place; no rule is about that"


def detach_in_place(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    if machine.grad_mode.inference:
        return tensor  # what it would change isn't kept track of
    if tensor.base is not None and tensor.view != "loose":
        machine.reports.silence(machine.here.at(node), REFUSED)
        return tensor
    made = machine.graph.cut("detach_", tensor, machine.here.at(node))
    made.doubted = machine.grad_mode.mode_in_doubt is not False  # inference mode leaves it in its graph
    machine.trail.set(tensor, "node", made)
    machine.trail.set(tensor, "requires", False)
    machine.trail.set(tensor, "leaf", True)
    return tensor


def convert(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """Out of the graph, into plain Python or numpy."""
    attribute = called(node, "item")
    return number(machine, tensor, {"__float__": "float"}.get(attribute, attribute), node)


def array(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`x.numpy()`: torch refuses what requires grad, unless it is forced."""
    force = kwargs.get("force", args[0] if args else FALSE)
    if isinstance(force, Const) and not force.value and not open_ended(kwargs, node):
        vm.tell(ArrayAsked(tensor, node))
        if made_unrecorded(vm.graph, tensor):
            refuses(vm.graph, vm.here.at(node))
    return convert(vm.machine, tensor, args, kwargs, node)


def number(machine: Machine, value: Value, how: str, node: ast.AST) -> Number:
    """A plain value converted from a tensor or from another plain value."""
    kinds = {"tolist": "list", "numpy": "array"}
    made = Number(
        machine.graph.cut(how, value, machine.here.at(node)), machine.here.at(node), kinds.get(how, "number")
    )
    made.shape = value.shape if how in kinds and isinstance(value, Tensor) else None
    machine.reports.findings.terms.fact_of(made, value)
    return made


def move(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`.cuda()`, `.to(...)`, `.float()`: the tensor itself, or a copy of another dtype or device."""
    name = called(node, "to")
    dtype = CASTS.get(name, "") or _asked_dtype(args, kwargs)
    if _stays(machine.leaves, tensor, name, dtype, args, kwargs):
        return tensor
    if name != "cpu":
        machine.leaves.moved = True
    made = machine.recording.node("to", machine.here.at(node), [tensor])
    result = machine.results.output(made)
    result.shape, result.dtype, result.layout = tensor.shape, dtype or tensor.dtype, tensor.layout or None
    if "memory_format" in kwargs:
        result.layout = of_format(kwargs["memory_format"])
    copied = bool(dtype and tensor.dtype and dtype != tensor.dtype) or (name == "cuda" and _on_cpu(tensor))
    result.leaf = (
        tensor.leaf
        if tensor.requires is False
        else (None if tensor.leaf is not False and not copied else False)
    )
    if not copied:
        machine.results.may_be(result, tensor)
    if dtype in ("int", "bool"):
        made.requires, made.cut, made.cut_place = False, "constant", made.place
        result.requires, result.leaf = False, True
    return result


def _stays(leaves: Leaves, tensor: Tensor, name: str, dtype: str, args: Args, kwargs: Kwargs) -> bool:
    """Whether a tensor is what and where it is asked to be, so that it is given back itself."""
    if "memory_format" in kwargs:
        return False
    if dtype and dtype == tensor.dtype == "float" and (name == "float" or (len(args) == 1 and not kwargs)):
        return True
    other = args[0] if len(args) == 1 and not kwargs else None
    if isinstance(other, Unknown):
        return other.origin == "device" and other.holds[0] is tensor
    if other is tensor:
        return True
    here = bool(tensor.dtype) and not leaves.moved
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


def cast(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """A cast to integers or truth values ends the graph."""
    made = machine.graph.cut("constant", tensor, machine.here.at(node))
    made.op = called(node, "cast")
    result = machine.results.output(made)
    result.shape, result.dtype = tensor.shape, CASTS.get(made.op, "int")
    result.layout = of_format(kwargs["memory_format"]) if "memory_format" in kwargs else tensor.layout or None
    return result
