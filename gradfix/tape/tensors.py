"""Methods of tensors: conversions and cuts by hand, all else from the effects table."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gradfix.tape import effects
from gradfix.tape.batches import severed_but_for_batches
from gradfix.tape.events import Add, Backward, Met
from gradfix.tape.graph import Node, Number, Tensor
from gradfix.tape.interpreter import Interpreter
from gradfix.tape.overloads import choose
from gradfix.tape.supposed import filled
from gradfix.tape.torchvalues import Weights
from gradfix.tape.values import NONE, NOTHING, Const, External, Seq, Unknown, Value

Args = Sequence[Value]
Kwargs = Mapping[str, Value]
Special = Callable[[Interpreter, Tensor, Args, Kwargs, ast.AST], Value]

SPECIAL: dict[str, Special] = {}
NAMES = {
    "__itruediv__": "div_",
    "__truediv__": "div",
    "__ipow__": "pow_",
    "__imatmul__": "matmul",
    "__ifloordiv__": "floor_divide_",
}
MOVES = frozenset(
    {"cuda", "cpu", "to", "float", "double", "half", "bfloat16", "type", "type_as", "xpu", "mps", "npu"}
)
CASTS = {
    "float": "float", "double": "double", "half": "half", "bfloat16": "half", "int": "int", "long": "int",
    "bool": "bool", "short": "int", "char": "int", "byte": "int",
}  # fmt: skip
INITIALISERS = frozenset(
    {"zero_", "fill_", "normal_", "uniform_", "random_", "copy_", "bernoulli_", "exponential_", "clamp_"}
)


def special(*names: str) -> Callable[[Special], Special]:
    """Register a method that the table can't describe."""

    def register(function: Special) -> Special:
        SPECIAL.update(dict.fromkeys(names, function))
        return function

    return register


def method_call(
    vm: Interpreter,
    tensor: Tensor,
    name: str,
    args: Args,
    kwargs: Kwargs,
    node: ast.AST,
    form: str = "method",
) -> Value:
    """`tensor.name(*args)`."""
    handler = SPECIAL.get(name)
    if handler is not None:
        return handler(vm, tensor, args, kwargs, node)
    if name == "split" and args and isinstance(args[0], Seq):
        name = "split_with_sizes"
    known = effects.method(name)
    picked = choose(known, [tensor, *args], kwargs) if known else None
    if picked is None:
        return _unlisted(vm, tensor, name, args, node)
    effect, bound = picked
    op = NAMES.get(name) or (
        name if not name.startswith("__") else effects.DUNDERS.get(name, name.strip("_"))
    )
    if tensor.grad_of is not None and effect.writes:
        return _on_gradient(vm, tensor, op, args, node)
    if effect.writes:
        _hand_written_step(vm, tensor, args, node)
    return vm.operate(op, effect, bound, vm.at(node), form)


def _unlisted(vm: Interpreter, tensor: Tensor, name: str, args: Args, node: ast.AST) -> Value:
    """A method that the table doesn't list: what went in may be in its result, and may be written."""
    result = vm.unknown(f"`.{name}()` isn't known", tensor, *args)
    result.part = True
    return result


def _on_gradient(vm: Interpreter, gradient: Tensor, op: str, args: Args, node: ast.AST) -> Value:
    """An in-place operation on a `.grad`: zeroing clears it, filling gives it another, the rest leaves it."""
    leaf = gradient.grad_of
    if leaf is not None and op in ("zero_", "fill_"):
        vm.clear([leaf], vm.at(node), must=op == "zero_" or zero(args), zeros=True)
    return gradient


def zero(args: Args) -> bool:
    """Whether a gradient is filled with zeros."""
    return bool(args) and isinstance(args[0], Const) and args[0].value == 0


def _hand_written_step(vm: Interpreter, tensor: Tensor, args: Args, node: ast.AST) -> None:
    """`w -= lr * w.grad` under no_grad or through `.data` is a step of one parameter."""
    leaf = tensor.data_of or tensor
    if (
        leaf.leaf is not True
        or leaf.requires is not True
        or (tensor.data_of is None and vm.grad is not False)
    ):
        return
    if any(_made_of_gradient(vm, arg, leaf) and not _older(arg, leaf) for arg in args):
        vm.use(leaf, vm.at(node), leaf, must=True, lean=leaf.lean)


def _older(value: Value, leaf: Tensor) -> bool:
    """Whether a value was computed before the newest contribution to a leaf's gradient."""
    adds = [event.born for event in leaf.gradient().events if isinstance(event, Add)]
    made = isinstance(value, Tensor) and value.grad_of is None and not value.storage.writes
    return isinstance(value, Tensor) and made and bool(adds) and value.born < adds[-1]


def _made_of_gradient(vm: Interpreter, value: Value, leaf: Tensor) -> bool:
    stack = vm.nodes(value)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.op == "grad" and node.facts and node.facts["of"] is leaf:
            return True
        stack.extend(node.parents)
    return False


def _flag(kwargs: Kwargs, args: Args, name: str, position: int) -> Value:
    return kwargs.get(name, args[position] if len(args) > position else NONE)


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


@special("detach")
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


@special("detach_")
def detach_in_place(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    if vm.inference:
        return tensor  # what it would change isn't kept track of
    made = vm.cut("detach_", tensor, vm.at(node))
    vm.trail.set(tensor, "node", made)
    vm.trail.set(tensor, "requires", False)
    vm.trail.set(tensor, "leaf", True)
    return tensor


@special("item", "tolist", "numpy", "__float__", "__int__", "__array__")
def convert(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """Out of the graph, into plain Python or numpy."""
    attribute = (
        node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else "item"
    )
    return number(vm, tensor, {"__float__": "float"}.get(attribute, attribute), node)


def number(vm: Interpreter, value: Value, how: str, node: ast.AST) -> Number:
    """A plain value converted from a tensor or from another plain value."""
    kinds = {"tolist": "list", "numpy": "array"}
    return Number(vm.cut(how, value, vm.at(node)), vm.at(node), kinds.get(how, "number"))


@special("requires_grad_")
def requires_grad_in_place(
    vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:
    set_requires_grad(
        vm, tensor, _flag(kwargs, args, "requires_grad", 0) if args or kwargs else Const(True), node
    )
    return tensor


def _surely_recorded(vm: Interpreter, tensor: Tensor, node: ast.AST) -> None:
    """What may be a result stays one where it is: that it requires grad doesn't make it a leaf."""
    made = Node("requires_grad_", vm.at(node), (tensor.node,), True)
    made.may, made.lean = True, tensor.lean
    vm.trail.set(tensor, "node", made)
    vm.trail.set(tensor, "requires", True)


def set_requires_grad(vm: Interpreter, tensor: Tensor, value: Value, node: ast.AST) -> None:
    """`x.requires_grad = value`, on a leaf or on a result that lost its graph."""
    wanted = bool(value.value) if isinstance(value, Const) else None
    if wanted is tensor.requires or (wanted is True and tensor.requires is True):
        return
    if wanted is True and tensor.leaf is None and tensor.requires is None:
        _surely_recorded(vm, tensor, node)
        return
    if wanted is True and tensor.leaf is not False:
        made = Node("leaf", tensor.place, (tensor.node,), True)
        made.lean = tensor.lean
        if tensor.node.parents:
            made.cut, made.cut_place = "requires_grad", vm.at(node)
            made.facts = {"target": vm.target(vm.at(node))}
        made.leaf = tensor
        vm.trail.set(tensor, "node", made)
        vm.trail.set(tensor, "requires", True)
        vm.trail.set(tensor, "leaf", True)
        vm.every_leaf.append(tensor)
    elif wanted is not True and tensor.leaf is not False:
        vm.trail.set(tensor, "requires", wanted)
        made = Node("leaf", tensor.place, (), wanted)
        made.leaf = tensor
        vm.trail.set(tensor, "node", made)


@special(*MOVES)
def move(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`.cuda()`, `.to(...)`, `.float()`: the tensor itself, or a copy of another dtype or device."""
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else "to"
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


@special("int", "long", "bool", "short", "char", "byte")
def cast(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """A cast to integers or truth values ends the graph."""
    made = vm.cut("constant", tensor, vm.at(node))
    made.op = (
        node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else "cast"
    )
    result = vm.output(made)
    result.shape, result.dtype = tensor.shape, CASTS.get(made.op, "int")
    result.layout = tensor.layout or None
    return result


@special("retain_grad")
def retain_grad(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    vm.trail.set(tensor, "retained", True)
    return NONE


@special(
    "size", "dim", "numel", "nelement", "ndimension", "stride", "is_contiguous", "get_device", "element_size",
    "storage", "untyped_storage", "data_ptr", "is_floating_point", "storage_offset", "__len__", "dim_order",
    "__hash__", "is_complex", "has_names",
)  # fmt: skip
def property_call(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """Facts about a tensor that involve no gradient."""
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    if name == "size" and tensor.shape and None not in tensor.shape:
        if args and isinstance(args[0], Const) and isinstance(args[0].value, int):
            if -len(tensor.shape) <= args[0].value < len(tensor.shape):
                return Const(tensor.shape[args[0].value])
        elif not args:
            return Seq("tuple", [Const(size) for size in tensor.shape])
    if name in ("dim", "ndimension") and tensor.shape is not None and None not in tensor.shape:
        return Const(len(tensor.shape))
    size = Unknown("a size")
    size.about = tensor.storage
    return size


@special("register_hook", "register_post_accumulate_grad_hook")
def hook(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    vm.hooked = True
    return Unknown("a hook")


@special("set_", "resize_", "share_memory_", "pin_memory", "apply_", "map_")
def opaque_write(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    return tensor


@special("new_tensor")
def new_tensor(vm: Interpreter, tensor: Tensor, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`x.new_tensor(data)`: `torch.tensor(data)` with x's dtype."""
    from gradfix.tape.torchcalls import wrap

    return wrap(vm, "tensor", args, kwargs, node)


def new_leaf(
    vm: Interpreter, node: ast.AST, requires: Value, shape: tuple[int | None, ...] | None, dtype: str
) -> Tensor:
    """What a factory returns."""
    wanted = bool(requires.value) if isinstance(requires, Const) else None
    tensor = vm.leaf(vm.at(node), wanted)
    tensor.shape, tensor.dtype, tensor.layout = shape, dtype, True
    if wanted:
        vm.every_leaf.append(tensor)
    return tensor
