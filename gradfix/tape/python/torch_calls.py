"""Functions of torch and of other packages, by dotted name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gradfix.defects import Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import ways_of
from gradfix.tape.domain.definitions import Instance, Partial
from gradfix.tape.domain.graph import Number, Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque, Scaler, Weights
from gradfix.tape.domain.values import FALSE, NONE, TRUE, Const, External, Map, Seq, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.domain.within import Within
from gradfix.tape.effects import table
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.effects.libraries import CONV_MODULES
from gradfix.tape.interpreter.imports import first_party
from gradfix.tape.interpreter.inside import all_in, open_ended
from gradfix.tape.interpreter.modes import MODES_BY_PATH, SWITCHES, call_mode
from gradfix.tape.interpreter.occasions import CheckpointRun
from gradfix.tape.machine.cuts import behind, made_unrecorded, nearest_cuts
from gradfix.tape.machine.deeds import WRITTEN, note
from gradfix.tape.machine.relied_upon import asks, refuses
from gradfix.tape.machine.terms import OPERATIONS as MADE_WITH
from gradfix.tape.python.arguments import each_argument, unstarred
from gradfix.tape.python.builtin import call_builtin
from gradfix.tape.python.type_tests import TENSORS, is_tensor
from gradfix.tape.strangers.framework_objects import wrap
from gradfix.tape.torch.conv_modules import conv_module
from gradfix.tape.torch.conversions import number
from gradfix.tape.torch.elements import elements, part, told_apart
from gradfix.tape.torch.factories import (
    MAKES,
    as_tensor,
    factory,
    parameter,
    tensor_from,
    variable,
)
from gradfix.tape.torch.functions import functional, torch_function
from gradfix.tape.torch.layers import CONTAINERS, make_layer
from gradfix.tape.torch.modules import leaves, opaque
from gradfix.tape.torch.optimizers import KINDS, clip, make_optimizer
from gradfix.tape.torch.other_packages import EINOPS, NUMPY, SILENT_PACKAGES, calculated, harmless, numpy_call
from gradfix.tape.torch.rearranged import rearranged
from gradfix.tape.torch.tensors import method_call
from gradfix.tape.torch.walks import backward_from_roots, grad_of_roots
from gradfix.tape.torch.weights import set_leaf

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine

SCHEDULERS = "torch.optim.lr_scheduler"
External_: TypeAlias = "Callable[[Interpreter, Args, Kwargs, ast.Call], Value]"

SAME_MODULE = (
    "torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel",
    "torch.compile", "torch.jit.script", "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.remove_weight_norm", "torch.nn.utils.parametrizations.orthogonal",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
)  # fmt: skip

PARALLEL = frozenset({"DataParallel", "DistributedDataParallel"})
"""Those of them that keep the module as an attribute of theirs."""


def call_external(vm: Interpreter, callee: External, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Call a name of another package."""
    if callee.path.startswith("builtins."):
        args = [told_apart(arg) for arg in args]
    elif callee.path.startswith("torch.nn.") and callee.path.rpartition(".")[2] in CONTAINERS:
        return _called(vm, callee.path, args, kwargs, node)
    return each_argument(vm.forks, unstarred(args), lambda some: _called(vm, callee.path, some, kwargs, node))


def _called(vm: Interpreter, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    handler = HANDLERS.get(path)
    if handler is not None:
        return handler(vm, args, kwargs, node)
    if path in WRAPPING:
        return wrap(vm.strangers, path, args, kwargs, node)
    if path.startswith("torch."):
        return _torch(vm, path, args, kwargs, node)
    if path.startswith("builtins."):
        return _of_python(vm, path[9:], args, kwargs, node)
    if path.startswith("math.") and any(isinstance(arg, (Tensor, Number)) for arg in args):
        return number(
            vm.machine, next(arg for arg in args if isinstance(arg, (Tensor, Number))), "math", node
        )
    if path.startswith("math.") and all(isinstance(arg, Const) for arg in args):
        return calculated(path, [arg.value for arg in args if isinstance(arg, Const)])
    if path.startswith(NUMPY):
        return numpy_call(vm.machine, path, args, kwargs, node)
    if path in EINOPS and args and isinstance(args[0], Tensor):
        return rearranged(vm.machine, path, args, kwargs, node)
    if path.startswith(SILENT_PACKAGES):
        return _silent(vm.machine, path, args, kwargs, node)
    own = first_party(vm, path)
    if own is not None:
        return vm.call(own, args, kwargs, node)
    if path in CONV_MODULES and (built := conv_module(vm.notes, args, kwargs, node)) is not None:
        return built
    return vm.call_unknown(External(path), args, kwargs, node)


def _torch(vm: Interpreter, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    name = path.rpartition(".")[2]
    if "out" in kwargs and vm.here.at_home:
        note(vm.reports, node, WRITTEN, kwargs["out"])
    if path in MODES_BY_PATH or path in SWITCHES:
        return call_mode(vm, name, args, kwargs, node)
    if path.startswith("torch.optim.") and name in KINDS:
        return make_optimizer(vm.machine, name, args, kwargs, node)
    if path in SAME_MODULE:
        if args and name in PARALLEL:
            vm.notes.parallel[id(args[0])] = args[0]
        return args[0] if args else Partial(External(path), [], dict(kwargs))
    if path.startswith(SILENT_PACKAGES):
        return _silent(vm.machine, path, args, kwargs, node)
    if path.startswith("torch.nn.functional."):
        return functional(vm, name, args, kwargs, node)
    if path.startswith("torch.nn.init."):
        return _initialise(vm.machine, args, node)
    if path.startswith("torch.nn.") and (table.module(name) is not None or name in CONTAINERS):
        return make_layer(vm.notes, name, args, kwargs, node)
    if path.startswith("torch.nn.utils.clip_grad"):
        if args:
            clip(vm.machine, args[0], [*args[1:], *kwargs.values()], node)
        return Unknown(fact("a gradient norm"), requires=False)
    if path.startswith("torch.nn.") and name[:1].isupper() and path.count(".") == 2:
        return make_layer(vm.notes, name, args, kwargs, node)
    if name.startswith("autocast"):
        entered = Unknown(fact("autocast"))
        entered.origin = path
        return entered
    return _function(vm, path[6:], args, kwargs, node)


def _of_python(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    result = call_builtin(vm, name, args, kwargs, node)
    if args and not kwargs and name in MADE_WITH:
        vm.reports.findings.terms.made(result, name, *args)
    elif type(result) is Unknown and not result.holds:
        vm.reports.findings.terms.fact_of(result, *args)
    return result


OTHER_OWNERS = {"os.getenv": "os.environ"}
"""What is asked where a function's name doesn't say it."""


def _silent(machine: Machine, path: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """What reads what it is given, at most; a scheduler changes what its optimizer's next steps do."""
    given = (*args, *kwargs.values())
    machine.timeline.note("uses", given, machine.here.at(node), machine.here.path)
    result = harmless(path, args, kwargs)
    owner = OTHER_OWNERS.get(path, path.rpartition(".")[0])
    terms = machine.reports.findings.terms
    terms.answered(result, path, terms.entry_of(External(owner), *args), *args)
    if path.startswith(SCHEDULERS) and given:
        machine.timeline.schedules[id(result)] = (result, given[0])
    return result


def _function(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    if name == "is_tensor" and len(args) == 1:
        asked = vm.forks.each(args[0], lambda one: is_tensor(vm.notes, one))
        if type(asked) is Unknown:
            vm.reports.findings.terms.made(asked, "isinstance", *args, TENSORS)
        return asked
    if name in MAKES:
        return factory(vm, name, args, kwargs, node)
    if name.startswith("Tensor.") and args and isinstance(args[0], Tensor):
        return method_call(vm, args[0], name[7:], args[1:], kwargs, node)
    several = [one for one in args if isinstance(one, Unknown) and name.endswith("_")]
    known = [kwargs.get("out", NONE), *several] if table.function(name) else args
    _may_clear(vm.machine, known, node)
    return torch_function(vm, name, args, kwargs, node)


def _may_clear(machine: Machine, written: Sequence[Value], node: ast.Call) -> None:
    """What is written by what isn't known may be zero: a gradient, or each of a list."""
    listed = [one for value in written for one in (value.items if isinstance(value, Seq) else [value])]
    inside = [one for value in listed for one in ways_of(value)]
    leaves = [one.grad_of for one in inside if isinstance(one, Tensor) and one.grad_of is not None]
    if leaves:
        machine.gradients.clear(leaves, machine.here.at(node), must=False)


def _initialise(machine: Machine, args: Args, node: ast.Call) -> Value:
    _may_clear(machine, args[:1], node)
    if args and isinstance(args[0], Tensor):
        machine.operations.describe(
            machine.recording.write(args[0], machine.here.at(node), "callee"), args[0], machine.here.at(node)
        )
    return args[0] if args else NONE


def _scaler(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    enabled = kwargs.get("enabled", TRUE)
    return Scaler(bool(enabled.value) if isinstance(enabled, Const) else None, vm.here.at(node))


def _deepcopy(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    source = args[0] if args else NONE
    vm.timeline.note("uses", args, vm.here.at(node), vm.here.path)
    if isinstance(source, Tensor) and made_unrecorded(vm.graph, source):
        refuses(vm.graph, vm.here.at(node))
    if isinstance(source, (Layer, Instance, Opaque)) or (isinstance(source, Unknown) and source.module):
        copy = Unknown(Why(What.COMPUTED, "a copy of a module"), lean=frozenset({Convention.B}))
        copy.origin = "copy.deepcopy"
        module = opaque(vm.machine, copy, node)
        facts = {leaf.requires for leaf in leaves(vm.machine, source)[0]}
        if facts and facts != {True}:
            set_leaf(vm.machine, module.weights, False if facts == {False} else None)
        return module
    if isinstance(source, (Seq, Map, Const)):
        return source if isinstance(source, Const) else Unknown(Why(What.COMPUTED, "a copy"))
    if not isinstance(source, Unknown):
        return Unknown(Why(What.COMPUTED, "a copy"))
    return Unknown(Why(What.COMPUTED, "a copy", None, source.why), (source,))


def _partial(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return Partial(args[0], list(args[1:]), dict(kwargs)) if args else Unknown(fact("partial"))


def _checkpoint(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    rest = {
        k: v
        for k, v in kwargs.items()
        if k not in ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "context_fn")
    }
    with Within(vm.machine.operations.keeping, vm.trail, {"runs_again": True}):
        result = vm.call(args[0], args[1:], rest, node) if args else NONE
    reentrant = kwargs.get("use_reentrant")
    if isinstance(reentrant, Const) and reentrant.value:
        return _reentrant(vm, args, result, node)
    return result


def _reentrant(vm: Interpreter, args: Args, result: Value, node: ast.Call) -> Value:
    """Reentrant checkpointing walks only from inputs that require grad."""
    facts = [vm.graph.requires(arg) for arg in args[1:]]
    if not facts or any(fact is not False for fact in facts) or vm.graph.requires(result) is not True:
        return result
    given = [below for arg in args[1:] for below in vm.graph.nodes(arg)]
    if any(behind(cut) for below in given for cut in nearest_cuts(below)):
        return vm.machine.results.output(vm.machine.recording.node("checkpoint", vm.here.at(node), args[1:]))
    vm.tell(CheckpointRun(result, args, node))
    return result


def _named_module(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return args[0] if args else NONE


def _is_grad_enabled(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    asks(vm.graph, vm.here.at(node))
    if vm.grad_mode.grad is not None:
        return Const(vm.grad_mode.grad)
    found = Unknown(fact("the grad mode"))
    vm.reports.findings.recording.append(found)
    return found


def _is_inference_mode_enabled(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    asks(vm.graph, vm.here.at(node))
    mode = vm.grad_mode
    if mode.inference is not None and mode.mode_in_doubt is False:
        return Const(mode.inference)
    return Unknown(fact("whether inference mode is on"))


def _not_here(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Whether the code is being exported or compiled: what is run line by line isn't."""
    if vm.program.compiles is None:
        named = (one.attr for one in all_in(vm.program.tree) if isinstance(one, ast.Attribute))
        vm.program.compiles = not COMPILERS.isdisjoint(named)
    return Unknown(fact("whether this is being compiled")) if vm.program.compiles else FALSE


def _from_pretrained(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`nn.Embedding.from_pretrained(vectors)`: its weights require no grad, unless told otherwise."""
    layer = make_layer(vm.notes, "Embedding", [], {}, node)
    freeze = kwargs.get("freeze", args[1] if len(args) > 1 else None)
    unsaid = freeze is None and not open_ended(kwargs, node)
    wanted = False if unsaid else not freeze.value if isinstance(freeze, Const) else None
    for leaf in leaves(vm.machine, layer)[0]:
        set_leaf(vm.machine, leaf, wanted, vm.here.at(node), unasked=unsaid)
    return layer


def _chained(vm: Interpreter, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`itertools.chain(...)`: the elements of one after the other."""
    items: list[Value] = []
    whole = True
    for arg in args:
        inside, known = ([arg], True) if isinstance(arg, Weights) else elements(vm, arg, node)
        items += [part(arg)] if inside is None else inside
        whole = whole and known
    return Seq("list", items, open=not whole)


COMPILERS = frozenset({"compile", "script", "trace", "trace_module", "export", "make_fx"})
"""By which code is run in another way than line by line."""
EXPORTING = (
    "torch.onnx.is_in_onnx_export",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.compiler.is_compiling",
    "torch.compiler.is_exporting",
)
HANDLERS: dict[str, External_] = {
    "itertools.chain": _chained,
    "torch.is_grad_enabled": _is_grad_enabled,
    "torch.is_inference_mode_enabled": _is_inference_mode_enabled,
    **dict.fromkeys(EXPORTING, _not_here),
    "torch.tensor": tensor_from,
    "torch.as_tensor": as_tensor,
    "torch.asarray": as_tensor,
    "torch.autograd.Variable": variable,
    "torch.nn.Embedding.from_pretrained": _from_pretrained,
    "torch.nn.Parameter": parameter,
    "torch.autograd.backward": backward_from_roots,
    "torch.autograd.grad": grad_of_roots,
    "torch.GradScaler": _scaler,
    "torch.amp.GradScaler": _scaler,
    "torch.cuda.amp.GradScaler": _scaler,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "functools.partial": _partial,
    "torch.no_grad.__call__": _named_module,
}
WRAPPING = frozenset(path for path, row in ROWS.items() if row.returns)
"""Functions of frameworks that wrap a model and its optimizer."""
