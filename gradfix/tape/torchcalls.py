"""Functions of torch and of other packages, by dotted name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from gradfix.tape import effects, shapes
from gradfix.tape.builtin import call_builtin
from gradfix.tape.calls import call_value, calls_external
from gradfix.tape.conditions import truth
from gradfix.tape.conversions import cut_tensor, dtype_class, number
from gradfix.tape.definitions import Instance, Partial
from gradfix.tape.graph import Node, Number, Tensor
from gradfix.tape.hosts import wrap as wrap_model
from gradfix.tape.imports import first_party
from gradfix.tape.interpreter import Interpreter
from gradfix.tape.layers import CONTAINERS, make_layer
from gradfix.tape.leaves import checkpointed
from gradfix.tape.modes import MODES_BY_PATH, SWITCHES, call_mode
from gradfix.tape.modules import leaves, opaque, set_leaf
from gradfix.tape.optimizers import KINDS, clip, make_optimizer
from gradfix.tape.overloads import choose
from gradfix.tape.tensors import in_graph, method_call, new_leaf
from gradfix.tape.torchvalues import Layer, Opaque, Scaler
from gradfix.tape.trail import alternatives
from gradfix.tape.unknowns import call_unknown
from gradfix.tape.values import (
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    Args,
    Const,
    External,
    Kwargs,
    Map,
    Seq,
    Shape,
    Unknown,
    Value,
)
from gradfix.tape.walks import backward_from_roots, grad_of_roots

External_ = Callable[[Interpreter, Args, Kwargs, ast.Call], Value]

SIZED = frozenset({"zeros", "ones", "rand", "randn", "empty", "full", "randint", "normal"})
LIKE = frozenset(
    {"zeros_like", "ones_like", "rand_like", "randn_like", "empty_like", "full_like", "randint_like"}
)
OTHER_FACTORIES = frozenset({
    "arange", "linspace", "logspace", "eye", "randperm", "from_numpy", "load", "FloatTensor", "DoubleTensor",
    "LongTensor", "IntTensor", "BoolTensor", "HalfTensor", "Tensor", "ByteTensor", "range",
})  # fmt: skip
TYPED = {
    "FloatTensor": "float", "Tensor": "float", "DoubleTensor": "float", "LongTensor": "int",
    "IntTensor": "int", "BoolTensor": "bool", "ByteTensor": "int", "HalfTensor": "half", "randperm": "int",
    "randint": "int",
}  # fmt: skip
SAME_MODULE = (
    "torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel",
    "torch.compile", "torch.jit.script", "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.remove_weight_norm", "torch.nn.utils.parametrizations.orthogonal",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
)  # fmt: skip
SILENT_PACKAGES = (
    "os.", "sys.", "time.", "json.", "logging.", "random.", "math.", "re.", "pathlib.", "datetime.",
    "argparse.", "shutil.", "warnings.", "pickle.", "wandb.", "tqdm", "torch.utils.tensorboard",
    "matplotlib.", "torch.cuda.", "torch.distributed.", "torch.backends.", "torch.manual_seed", "torch.save",
    "torch.utils.data", "torch.optim.lr_scheduler", "torchvision.utils", "collections.", "itertools.",
    "typing.", "tensorboardX.",
)  # fmt: skip
NUMPY = ("numpy.",)
MODULE_TWINS = {"logsigmoid": "LogSigmoid"}
"""Functionals that are compiled and can't be recorded by name; their module can."""
EINOPS = frozenset(
    {"einops.rearrange", "einops.reduce", "einops.repeat", "einops.einsum", "einops.pack", "einops.unpack"}
)


@calls_external
def call_external(vm: Interpreter, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Call a name of another package."""
    handler = HANDLERS.get(path)
    if handler is not None:
        return handler(vm, args, kwargs, node)
    if path.startswith("torch."):
        return _torch(vm, path, args, kwargs, node)
    if path.startswith("builtins."):
        return call_builtin(vm, path[9:], args, kwargs, node)
    if path.startswith("math.") and any(isinstance(arg, (Tensor, Number)) for arg in args):
        return number(vm, next(arg for arg in args if isinstance(arg, (Tensor, Number))), "math", node)
    if path.startswith("math.") and all(isinstance(arg, Const) for arg in args):
        return Unknown("a constant of math", requires=False)
    if path.startswith(NUMPY):
        return _numpy(vm, args, node)
    if path in EINOPS and args and isinstance(args[0], Tensor):
        result = vm.output(vm.node(path.rpartition(".")[2], vm.at(node), [args[0]]))
        result.layout = None
        return result
    if path.startswith(SILENT_PACKAGES):
        return _harmless(path, args)
    own = first_party(vm, path)
    if own is not None:
        return call_value(vm, own, args, kwargs, node)
    return call_unknown(vm, External(path), args, kwargs, node)


def _harmless(path: str, args: Args) -> Value:
    result = Unknown(f"the result of {path}")
    result.origin = path
    if path.startswith("tqdm") and args:
        return args[0]
    if path in ("collections.OrderedDict", "collections.defaultdict"):
        return Map({}, open=path.endswith("defaultdict")) if not args else _ordered(args[0])
    if path in ("collections.deque",):
        return Seq("list", list(args[0].items) if args and isinstance(args[0], Seq) else [], open=True)
    if path == "itertools.chain":
        return Seq("list", list(args), open=False) if args else result
    if path.startswith("torch.utils.data") or path.endswith("DataLoader"):
        result.requires = False
        result.lean = frozenset({"A"})
    return result


def _ordered(value: Value) -> Value:
    if isinstance(value, Seq) and all(isinstance(item, Seq) and len(item.items) == 2 for item in value.items):
        pairs = [(item.items[0], item.items[1]) for item in value.items if isinstance(item, Seq)]
        if all(isinstance(key, Const) for key, _ in pairs):
            return Map({key.value: item for key, item in pairs if isinstance(key, Const)}, value.open)
    return value if isinstance(value, Map) else Map({}, open=True)


def _numpy(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    """numpy on arrays that came from tensors stays outside the graph; on anything else it is plain data."""
    given = [arg for arg in args if isinstance(arg, (Number, Tensor))]
    if given:
        return Number(
            Node("numpy", node, tuple(n for arg in given for n in vm.nodes(arg)), False), vm.at(node), "array"
        )
    return Unknown("a numpy value", requires=False)


def _torch(vm: Interpreter, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    name = path.rpartition(".")[2]
    if path in MODES_BY_PATH or path in SWITCHES:
        return call_mode(vm, name, args, kwargs, node)
    if path.startswith("torch.optim.") and name in KINDS:
        return make_optimizer(vm, name, args, kwargs, node)
    if path in SAME_MODULE:
        return args[0] if args else Partial(External(path), [], dict(kwargs))
    if path.startswith(SILENT_PACKAGES):
        return _harmless(path, args)
    if path.startswith("torch.nn.functional."):
        return functional(vm, name, args, kwargs, node)
    if path.startswith("torch.nn.init."):
        return _initialise(vm, args, node)
    if path.startswith("torch.nn.") and (effects.module(name) is not None or name in CONTAINERS):
        return make_layer(vm, name, args, kwargs, node)
    if path.startswith("torch.nn.utils.clip_grad"):
        if args:
            clip(vm, args[0], node)
        return Unknown("a gradient norm", requires=False)
    if path.startswith("torch.nn.") and name[:1].isupper() and path.count(".") == 2:
        return make_layer(vm, name, args, kwargs, node)
    if name.startswith("autocast"):
        return Unknown("autocast")
    return _function(vm, path[6:], args, kwargs, node)


def _function(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    if name in SIZED or name in LIKE or name in OTHER_FACTORIES:
        return _factory(vm, name, args, kwargs, node)
    if name.startswith("Tensor.") and args and isinstance(args[0], Tensor):
        return method_call(vm, args[0], name[7:], args[1:], kwargs, node)
    return torch_function(vm, name, args, kwargs, node)


def torch_function(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`torch.name(...)` by the table."""

    args = [in_graph(vm, arg) for arg in args]
    if name == "split" and len(args) > 1 and isinstance(args[1], Seq):
        name = "split_with_sizes"
    known = effects.function(name)
    picked = choose(known, args, kwargs) if known else None
    if picked is None:
        if not known and isinstance(node, ast.Call):
            return call_unknown(vm, External(f"torch.{name}"), args, kwargs, node)
        result = vm.unknown(f"torch.{name} with these arguments", *args)
        result.part = True
        return result
    effect, bound = picked
    if not any(isinstance(value, (Tensor, Seq, Unknown)) for value in bound.values()):
        return Unknown(f"torch.{name}")
    return vm.operate(name, effect, bound, vm.at(node), "out" if "out" in kwargs else "method")


def functional(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`F.name(...)`; with `inplace=True` it writes its input."""

    known = effects.functional(name)
    twin = effects.module(MODULE_TWINS.get(name, ""))
    if twin is not None:
        known = (twin.train,)
    if not known:
        return torch_function(vm, name, args, kwargs, node)
    picked = choose(known, args, kwargs)
    if picked is None:
        return vm.unknown(f"F.{name} with these arguments", *args)
    effect, bound = picked
    flag = bound.get("inplace", FALSE)
    inplace = effects.functional_inplace(name)
    on, yes, no = truth(vm, flag, node) if inplace else (False, frozenset(), frozenset())
    if on is False:
        return _out_of_place(vm, name, effect, bound, node)
    chosen = choose(inplace, args, kwargs)
    if chosen is None:
        return vm.unknown(f"F.{name} in place", *args)
    if on is True:
        return vm.operate(name, chosen[0], chosen[1], vm.at(node), "keyword")
    results: list[tuple[frozenset, Value]] = []  # type: ignore[type-arg]
    vm.fork([
        (yes, lambda: results.append((yes, vm.operate(name, chosen[0], chosen[1], vm.at(node), "keyword")))),
        (no, lambda: results.append((no, _out_of_place(vm, name, effect, bound, node)))),
    ])  # fmt: skip
    return alternatives(results)


def _out_of_place(
    vm: Interpreter, name: str, effect: effects.Effect, bound: dict[str, Value], node: ast.Call
) -> Value:
    if name.endswith("dropout") and isinstance(p := bound.get("p", Const(0.5)), Const):
        if p.value == 0:
            return next(iter(bound.values()))
        on = bound.get("training", Const(name.startswith("dropout")))
        if effect.returns_self == "maybe" and isinstance(on, Const) and on.value:
            effect = replace(effect, returns_self="", view="")
    if effect.writes and not isinstance(bound.get("out"), Tensor):
        effect = replace(effect, writes=effect.args[:1] if effect.returns_self == "always" else ())
    return vm.operate(name, effect, bound, vm.at(node))


def _factory(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    if "device" in kwargs:
        vm.moved = True
    requires = kwargs.get("requires_grad", FALSE)
    dtype = _factory_dtype(name, args, kwargs)
    if name in LIKE:
        return _like(vm, args, requires, dtype, node)
    if name == "normal" and args and isinstance(args[0], (Tensor, Unknown)):
        return torch_function(vm, name, args, kwargs, node)
    if name == "from_numpy" and args and isinstance(args[0], Number):
        return wrap(vm, "tensor", args, kwargs, node)
    if name in TYPED and args and isinstance(args[0], (Seq, Tensor, Number)):
        typed = wrap(vm, "tensor", args, kwargs, node)
        if isinstance(typed, Tensor):
            typed.dtype = dtype
        return typed
    if name == "load":
        return Unknown("a loaded object", requires=False)
    return new_leaf(vm, node, requires, _factory_shape(name, args, kwargs), dtype)


def _like(vm: Interpreter, args: Args, requires: Value, dtype: str, node: ast.Call) -> Value:
    """`torch.zeros_like(x)` and its kin."""
    source = args[0] if args else NONE
    if not isinstance(source, Tensor):
        return new_leaf(vm, node, requires, None, dtype)
    like = new_leaf(vm, node, requires, source.shape, dtype)
    like.layout = source.layout or None
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
    if name in ("arange", "range") and all(isinstance(arg, Const) for arg in args):
        floats = any(isinstance(arg.value, float) for arg in args if isinstance(arg, Const))
        return "float" if floats or name == "range" else "int"
    return TYPED.get(name, "float" if name in SIZED or name in ("linspace", "eye") else "")


def _factory_shape(name: str, args: Args, kwargs: Kwargs) -> Shape:
    """The shape of what a factory makes."""
    if name == "arange":
        bounds = [arg.value for arg in args if isinstance(arg, Const)]
        return (shapes.counted(bounds) if bounds and len(bounds) == len(args) else None,)
    if name in ("linspace", "logspace"):
        steps = kwargs.get("steps", args[2] if len(args) > 2 else NONE)
        return shapes.sizes([steps])
    if name == "eye":
        return shapes.sizes([args[0], args[1] if len(args) > 1 else args[0]]) if args else None
    if name not in SIZED and name not in TYPED:
        return None
    first = {"randint": 2 if len(args) > 2 else 1, "normal": 2}.get(name, 0)
    wanted = args[:1] if name == "full" else args[first:]
    wanted = [kwargs["size"]] if "size" in kwargs else wanted
    return shapes.sizes(wanted) if wanted else None


def wrap(vm: Interpreter, how: str, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`torch.tensor(value)`: a copy outside any graph."""
    source = args[0] if args else kwargs.get("data", NONE)
    tensor = new_leaf(
        vm, node, kwargs.get("requires_grad", FALSE), shapes.literal(source), _literal_dtype(source, kwargs)
    )
    if isinstance(source, (Tensor, Number)):
        tensor.layout = (isinstance(source, Tensor) and source.layout) or None
    below = vm.nodes(source)
    if below:
        listed = isinstance(source, Seq)
        made = Node("leaf", vm.at(node), tuple(below), tensor.requires)
        made.leaf = tensor
        made.cut, made.cut_place = ("tensor_of_list" if listed and how == "tensor" else how), vm.at(node)
        leans = (vm.lean(item) for item in source.items) if isinstance(source, Seq) else (vm.lean(source),)
        made.lean = NOTHING.union(*leans)
        tensor.node = made
    return tensor


def _literal_dtype(source: Value, kwargs: Kwargs) -> str:
    asked = kwargs.get("dtype")
    if isinstance(asked, External):
        return dtype_class(asked.path)
    if isinstance(source, Tensor):
        return source.dtype
    return "" if asked is not None else shapes.literal_dtype(source)


def _tensor(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return wrap(vm, "tensor", args, kwargs, node)


def _as_tensor(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    if args and isinstance(args[0], (Tensor, Unknown)):
        return args[0]
    return wrap(vm, "tensor", args, kwargs, node)


def _variable(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`Variable(t)` detaches, leaf or not, and shares the memory."""
    source = args[0] if args else kwargs.get("data", NONE)
    if isinstance(source, Unknown):
        source = vm.tensor_of(source)
    if not isinstance(source, Tensor):
        return vm.unknown("Variable of what isn't known", *args)
    result = cut_tensor(vm, source, "Variable", node)
    requires = kwargs.get("requires_grad", args[1] if len(args) > 1 else FALSE)
    if isinstance(requires, Const) and requires.value:
        made = Node("leaf", vm.at(node), result.node.parents, True)
        made.leaf, made.cut, made.cut_place, made.lean = result, "Variable", vm.at(node), result.lean
        result.node, result.requires = made, True
        vm.every_leaf.append(result)
    return result


def _parameter(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    source = args[0] if args else kwargs.get("data", NONE)
    requires = kwargs.get("requires_grad", args[1] if len(args) > 1 else TRUE)
    tensor = new_leaf(vm, node, requires, source.shape if isinstance(source, Tensor) else None, "float")
    tensor.parameter = True
    if isinstance(source, Tensor):
        tensor.storage = source.storage
        made = Node("leaf", vm.at(node), tuple(vm.nodes(source)), tensor.requires)
        made.leaf, made.cut, made.cut_place = tensor, "Parameter", vm.at(node)
        tensor.node = made
    return tensor


def _initialise(vm: Interpreter, args: Args, node: ast.Call) -> Value:
    if args and isinstance(args[0], Tensor):
        vm.describe(vm.write(args[0], vm.at(node), "callee"), args[0], vm.at(node))
    return args[0] if args else NONE


def _scaler(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    enabled = kwargs.get("enabled", TRUE)
    return Scaler(bool(enabled.value) if isinstance(enabled, Const) else None, vm.at(node))


def _deepcopy(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    source = args[0] if args else NONE
    if isinstance(source, (Layer, Instance, Opaque)) or (isinstance(source, Unknown) and source.module):
        copy = Unknown("a copy of a module", lean=frozenset({"B"}))
        copy.origin = "copy.deepcopy"
        module = opaque(vm, copy, node)
        facts = {leaf.requires for leaf in leaves(vm, source)[0]}
        if facts and facts != {True}:
            set_leaf(vm, module.weights, False if facts == {False} else None)
        return module
    if isinstance(source, (Seq, Map, Const)):
        return source if isinstance(source, Const) else Unknown("a copy")
    return Unknown("a copy")


def _partial(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return Partial(args[0], list(args[1:]), dict(kwargs)) if args else Unknown("partial")


def _checkpoint(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:

    rest = {
        k: v
        for k, v in kwargs.items()
        if k not in ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "context_fn")
    }
    result = call_value(vm, args[0], args[1:], rest, node) if args else NONE
    return checkpointed(vm, args, kwargs, result, node)


def _named_module(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return args[0] if args else NONE


def _is_grad_enabled(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return Unknown("the grad mode") if vm.grad is None else Const(vm.grad)


def _engine(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return wrap_model(vm, "deepspeed.initialize", args, kwargs)


HANDLERS: dict[str, External_] = {
    "deepspeed.initialize": _engine,
    "torch.is_grad_enabled": _is_grad_enabled,
    "torch.tensor": _tensor,
    "torch.as_tensor": _as_tensor,
    "torch.asarray": _as_tensor,
    "torch.autograd.Variable": _variable,
    "torch.autograd.variable.Variable": _variable,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.autograd.backward": backward_from_roots,
    "torch.autograd.grad": grad_of_roots,
    "torch.amp.GradScaler": _scaler,
    "torch.cuda.amp.GradScaler": _scaler,
    "torch.cuda.amp.grad_scaler.GradScaler": _scaler,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "functools.partial": _partial,
    "torch.no_grad.__call__": _named_module,
}
