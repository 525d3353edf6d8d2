"""Tensors made from data: factories, copies, parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.graph import Node, Number, Tensor
from gradfix.tape.domain.values import (
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    Const,
    External,
    Seq,
    Unknown,
    asked_shape,
    unknown_of,
)
from gradfix.tape.domain.why import Why, thing
from gradfix.tape.effects import shapes
from gradfix.tape.effects.layouts import of_format
from gradfix.tape.effects.operations import told, where
from gradfix.tape.effects.pieces import literal
from gradfix.tape.torch.conversions import cut_tensor, dtype_class
from gradfix.tape.torch.functions import torch_function

if TYPE_CHECKING:
    from gradfix.tape.domain.values import (
        Args,
        Kwargs,
        Shape,
        Truth,
        Value,
    )
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine

MAKES = told("makes")
DTYPES = told("dtype")
SIZED = where("makes", "sized", "typed")
BY_DTYPE = where("makes", "typed")
LIKE = where("makes", "like")


def new_leaf(machine: Machine, node: ast.AST, requires: Value, shape: Shape, dtype: str) -> Tensor:
    """What a factory returns."""
    wanted = bool(requires.value) if isinstance(requires, Const) else None
    tensor = machine.graph.leaf(machine.here.at(node), wanted)
    tensor.shape, tensor.dtype, tensor.layout = shape, dtype, True
    if machine.grad_mode.inference:
        tensor.storage.inference = machine.grad_mode.grad_off[1]
    if wanted:
        machine.leaves.every_leaf.append(tensor)
    return tensor


def factory(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`torch.zeros(...)` and its kin: a leaf, or a copy of the data that is given."""
    if "device" in kwargs:
        vm.machine.leaves.moved = True
    requires = kwargs.get("requires_grad", FALSE)
    dtype = _factory_dtype(name, args, kwargs)
    if name in LIKE:
        return _like(vm.machine, (name, args, kwargs), requires, dtype, node)
    if name == "normal" and args and isinstance(args[0], (Tensor, Unknown)):
        return torch_function(vm, name, args, kwargs, node)
    if name == "from_numpy" and args and isinstance(args[0], Number):
        return wrap(vm.machine, "tensor", args, kwargs, node)
    if name in BY_DTYPE and args and isinstance(args[0], (Seq, Tensor, Number)):
        typed = wrap(vm.machine, "tensor", args, kwargs, node)
        if isinstance(typed, Tensor):
            typed.dtype = dtype
        return typed
    if name == "load":
        return Unknown(
            thing("a loaded object")
        )  # parameters that were saved require grad when they are loaded
    made = new_leaf(vm.machine, node, requires, _factory_shape(name, args, kwargs), dtype)
    made.layout = _factory_layout(name, args, kwargs)
    made.node.facts = {"factory": name}
    return made


def _array(args: Args) -> tuple[Shape, str] | None:
    """What is known of an array that a tensor is made of."""
    return args[0].array if args and isinstance(args[0], Unknown) and not args[0].children else None


def _like(
    machine: Machine, asked: tuple[str, Args, Kwargs], requires: Value, dtype: str, node: ast.Call
) -> Value:
    """`torch.zeros_like(x)` and its kin."""
    name, args, kwargs = asked
    source = args[0] if args else NONE
    like = new_leaf(machine, node, requires, source.shape if isinstance(source, Tensor) else None, dtype)
    like.node.facts = {"factory": name}
    if isinstance(source, Tensor):
        like.layout = source.layout or None
    if "memory_format" in kwargs:
        like.layout = of_format(kwargs["memory_format"])
    return like


def _factory_dtype(name: str, args: Args, kwargs: Kwargs) -> str:
    """The dtype class of what a factory makes: what it is asked for, or what its name or its bounds say."""
    asked = kwargs.get("dtype")
    if asked is not None:
        return dtype_class(asked.path) if isinstance(asked, External) else ""
    if name in LIKE:
        return args[0].dtype if args and isinstance(args[0], Tensor) else ""
    if name == "full":
        return shapes.literal_dtype(args[1] if len(args) > 1 else kwargs.get("fill_value", NONE))
    if name == "from_numpy" and (array := _array(args)) is not None:
        return array[1]
    if name in ("arange", "range") and all(isinstance(arg, Const) for arg in args):
        floats = any(isinstance(arg.value, float) for arg in args if isinstance(arg, Const))
        return "float" if floats or name == "range" else "int"
    return DTYPES.get(name, "")


def _factory_layout(name: str, args: Args, kwargs: Kwargs) -> Truth:
    """Whether what a factory makes is contiguous: memory of numpy's lies as its array does."""
    if "memory_format" in kwargs:
        return of_format(kwargs["memory_format"])
    if name == "from_numpy" or (name in BY_DTYPE and len(args) == 1 and isinstance(args[0], Unknown)):
        return None
    return True


def _factory_shape(name: str, args: Args, kwargs: Kwargs) -> Shape:
    """The shape of what a factory makes."""
    if (array := _array(args)) is not None and (name == "from_numpy" or name in BY_DTYPE):
        return array[0]
    if name == "arange":
        bounds = [arg.value for arg in args if isinstance(arg, Const)]
        return (shapes.counted(bounds) if bounds and len(bounds) == len(args) else None,)
    if name in ("linspace", "logspace"):
        steps = kwargs.get("steps", args[2] if len(args) > 2 else NONE)
        return asked_shape([Seq("tuple", [steps])])
    if name == "eye":
        return asked_shape([args[0], args[1] if len(args) > 1 else args[0]]) if args else None
    if name not in SIZED:
        return None
    first = {"randint": 2 if len(args) > 2 else 1, "normal": 2}.get(name, 0)
    wanted = args[:1] if name == "full" else args[first:]
    wanted = [kwargs["size"]] if "size" in kwargs else wanted
    return asked_shape(wanted) if wanted else None


def wrap(machine: Machine, how: str, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`torch.tensor(value)`: a copy outside any graph."""
    source = args[0] if args else kwargs.get("data", NONE)
    shape = source.shape if isinstance(source, Number) else literal(source)
    dtype = _literal_dtype(source, kwargs)
    if (array := _array([source])) is not None:
        shape, dtype = array[0], dtype or ("" if "dtype" in kwargs else array[1])
    tensor = new_leaf(machine, node, kwargs.get("requires_grad", FALSE), shape, dtype)
    tensor.layout = _layout_of(source)
    below = machine.graph.nodes(source)
    if below:
        listed = isinstance(source, Seq)
        made = Node("leaf", machine.here.at(node), tuple(below), tensor.requires)
        made.leaf = tensor
        made.cut, made.cut_place = (
            ("tensor_of_list" if listed and how == "tensor" else how),
            machine.here.at(node),
        )
        leans = (
            (machine.graph.lean(item) for item in source.items)
            if isinstance(source, Seq)
            else (machine.graph.lean(source),)
        )
        made.lean = NOTHING.union(*leans)
        tensor.node = made
    return tensor


def _layout_of(source: Value) -> Truth:
    """Whether a copy of some data is contiguous: one of an array lies as that does."""
    if isinstance(source, Tensor):
        return source.layout or None
    plain = source.kind == "list" if isinstance(source, Number) else isinstance(source, (Const, Seq))
    return plain or None


def _literal_dtype(source: Value, kwargs: Kwargs) -> str:
    asked = kwargs.get("dtype")
    if isinstance(asked, External):
        return dtype_class(asked.path)
    if isinstance(source, Tensor):
        return source.dtype
    return "" if asked is not None else shapes.literal_dtype(source)


def tensor_from(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`torch.tensor(value)`."""
    return wrap(vm.machine, "tensor", args, kwargs, node)


def as_tensor(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`torch.as_tensor(value)`: a tensor is given back itself."""
    if args and isinstance(args[0], (Tensor, Unknown)):
        return args[0]
    return wrap(vm.machine, "tensor", args, kwargs, node)


def variable(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`Variable(t)` detaches, leaf or not, and shares the memory."""
    source = args[0] if args else kwargs.get("data", NONE)
    if isinstance(source, Unknown):
        source = vm.graph.tensor_of(source)
    if not isinstance(source, Tensor):
        return unknown_of(Why(What.COMPUTED, "Variable of what isn't known"), *args)
    result = cut_tensor(vm.machine, source, "Variable", node)
    requires = kwargs.get("requires_grad", args[1] if len(args) > 1 else FALSE)
    wanted = bool(requires.value) if isinstance(requires, Const) else None
    if wanted is not False:
        made = Node("leaf", vm.here.at(node), result.node.parents, wanted)
        made.leaf, made.cut, made.cut_place, made.lean = result, "Variable", vm.here.at(node), result.lean
        result.node, result.requires = made, wanted
        vm.machine.leaves.every_leaf.append(result)
    return result


def parameter(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`nn.Parameter(t)`: a leaf over the same memory."""
    source = args[0] if args else kwargs.get("data", NONE)
    requires = kwargs.get("requires_grad", args[1] if len(args) > 1 else TRUE)
    tensor = new_leaf(
        vm.machine, node, requires, source.shape if isinstance(source, Tensor) else None, "float"
    )
    tensor.parameter = True
    if isinstance(source, Unknown):
        tensor.layout = None
    if isinstance(source, Tensor):
        tensor.storage, tensor.layout, tensor.strides = source.storage, source.layout, source.strides
        made = Node("leaf", vm.here.at(node), tuple(vm.graph.nodes(source)), tensor.requires)
        made.leaf, made.cut, made.cut_place = tensor, "Parameter", vm.here.at(node)
        tensor.node = made
    return tensor


def new_tensor(machine: Machine, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`x.new_tensor(data)`: `torch.tensor(data)` with x's dtype."""
    return wrap(machine, "tensor", args, kwargs, node)
