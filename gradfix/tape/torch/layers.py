"""The modules of torch.nn: built from the table, called by their effect, containers by their items."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gradfix.defects.records import Written
from gradfix.tape.domain.alternatives import alternatives, narrowed
from gradfix.tape.domain.definitions import Instance, Method
from gradfix.tape.domain.effect import Effect, ModuleEffect
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import meet
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import NONE, NOTHING, Alt, Const, Map, Seq, Undefined, Unknown, Value
from gradfix.tape.effects import geometry, shapes, table
from gradfix.tape.effects.contractions import LOSSES
from gradfix.tape.effects.operations import layers_having, name_of_layer
from gradfix.tape.interpreter.conditions import truth
from gradfix.tape.interpreter.granted import leaning_on_it, training, trains
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.occasions import Replaced

CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
DROPS = layers_having("drops")
FLAG_OFF = {"bias": "bias", "affine": "weight bias", "elementwise_affine": "weight bias"}


def make_layer(
    vm: Interpreter, kind: str, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """`nn.Kind(...)`."""
    place = vm.at(node)
    if kind in CONTAINERS:
        return _container(vm, kind, args, kwargs, node)
    effect = table.module(kind)
    if effect is None:
        return Opaque(Unknown(f"nn.{kind}"), weights(vm, node), NOTHING)
    bound = {
        **dict(zip(effect.init, args, strict=False)),
        **{k: v for k, v in kwargs.items() if k in effect.init},
    }
    layer = Layer(kind, effect, bound, place)
    flag = bound.get("inplace")
    if flag is None or effect.inplace is None:
        return layer
    known, yes, no = truth(vm, flag, _inplace_argument(node))
    layer.inplace = known is not False
    if known is not None:
        return layer
    return alternatives([(yes, layer), (no, Layer(kind, effect, bound, place))])


def _inplace_argument(node: ast.AST) -> ast.expr:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "inplace":
                return keyword.value
        if node.args:
            return node.args[-1]
    assert isinstance(node, ast.expr)
    return node


def weights(vm: Interpreter, node: ast.AST | None) -> Tensor:
    """One leaf that stands for all parameters of a module that isn't known."""
    tensor = vm.leaf(vm.at(node) if node is not None else None, True)
    tensor.parameter = True
    vm.every_leaf.append(tensor)
    return tensor


def _container(
    vm: Interpreter, kind: str, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Layer:
    layer = Layer(kind, None, {}, vm.at(node))
    layer.items = {}
    given: list[tuple[str, Value]] = []
    if kind == "Sequential":
        given = [
            (str(i), arg) for i, arg in enumerate(args) if not (isinstance(arg, Seq) and arg.kind == "star")
        ]
        layer.open = len(given) < len(args)
        if len(given) == 1 and isinstance(named := given[0][1], Map):
            given, layer.open = _entries(named), named.open
    elif args and isinstance(args[0], Map):
        given, layer.open = _entries(args[0]), args[0].open
    elif args and isinstance(args[0], Seq):
        given = [(str(i), item) for i, item in enumerate(args[0].items)]
        layer.open = args[0].open
    elif args:
        layer.open = True
    layer.items.update(given)
    return layer


def _entries(given: Map) -> list[tuple[str, Value]]:
    return [(str(key), value) for key, value in given.items.items()]


def parameters_of(vm: Interpreter, layer: Layer) -> dict[str, Tensor]:
    """A layer's own parameters, made when they are first needed."""
    if layer.effect is None or not layer.effect.parameters:
        return {}
    found: dict[str, Tensor] = {}
    off: list[str] = []
    for flag, names in FLAG_OFF.items():
        if isinstance(given := layer.args.get(flag), Const) and given.value is False:
            off.extend(names.split())
    for name in layer.effect.parameters:
        if name in off:
            continue
        value = layer.attrs.get(name)
        if value is None:
            tensor = vm.leaf(layer.place, True)
            tensor.parameter, tensor.dtype, tensor.layout = True, "float", True
            vm.every_leaf.append(tensor)
            if layer.kind == "Linear" and name == "weight":
                sizes = [layer.args.get(size, NONE) for size in ("out_features", "in_features")]
                tensor.shape = shapes.sizes(sizes)
            layer.attrs[name] = value = tensor
        if isinstance(value, Tensor):
            found[name] = value
    return found


def layer_attribute(vm: Interpreter, layer: Layer, name: str) -> Value:
    """An attribute of a layer of torch.nn."""
    parameters_of(vm, layer)
    value = layer.attrs.get(name)
    if isinstance(value, Alt):
        return narrowed(value, vm.path)
    if value is not None:
        return value
    if layer.items is not None and name in layer.items:
        return layer.items[name]
    if name in layer.args:
        return layer.args[name]
    if layer.effect is not None and name in layer.effect.buffers:
        buffer = vm.leaf(layer.place, False)
        layer.attrs[name] = buffer
        return buffer
    if name == "training":
        return training(vm, layer)
    if name == "inplace" and layer.inplace is not None:
        return Const(layer.inplace)
    if layer.effect is not None and name in FLAG_OFF:
        return NONE
    return Method(layer, name)


def store_on_layer(vm: Interpreter, layer: Layer, name: str, value: Value, node: ast.AST) -> None:
    """`layer.name = value`: `inplace` set afterwards, a parameter or submodule put in."""

    if name == "inplace":
        wanted = bool(value.value) if isinstance(value, Const) else None
        vm.trail.set(layer, "inplace", wanted)
        vm.trail.set(layer, "place", vm.at(node))
        return
    old = layer.attrs.get(name)
    if isinstance(old, (Layer, Instance, Opaque, Tensor)):
        vm.tell(Replaced(old, value, node))
    if layer.items is not None and (name in layer.items or isinstance(value, (Layer, Instance, Opaque))):
        vm.trail.set(layer, "items", {**layer.items, name: value})
    vm.trail.put(layer, layer.attrs, name, value)


def call_layer(
    vm: Interpreter, layer: Layer, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """Run a layer's forward."""
    if layer.items is not None:
        return _call_sequence(vm, layer, args, node)
    if layer.effect is None:
        return vm.unknown(f"nn.{layer.kind} isn't known", *args)
    modes = layer.effect
    if modes.eval is not modes.train and trains(vm, layer):
        return leaning_on_it(vm, lambda: _run_layer(vm, layer, modes, args, kwargs, node))
    return _run_layer(vm, layer, modes, args, kwargs, node)


def _run_layer(
    vm: Interpreter,
    layer: Layer,
    modes: ModuleEffect,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
) -> Value:
    """What a layer does to its arguments, in the mode that it is in."""
    effect = modes.eval if layer.training is False else modes.train
    if layer.kind in DROPS:
        p = layer.args.get("p")
        if isinstance(p, Const) and p.value == 0:
            effect = modes.eval
    writes = effect is not modes.eval or layer.kind not in DROPS
    if layer.inplace is True and modes.inplace is not None and writes:
        effect = modes.inplace
    given = [vm.tensor_of(arg) if isinstance(arg, Unknown) else arg for arg in args[:1]] + list(args[1:])
    bound: dict[str, Value] = dict(zip(effect.args, given, strict=False))
    bound.update({name: value for name, value in kwargs.items() if name in effect.args})
    if not bound or not isinstance(next(iter(bound.values())), Tensor):
        return vm.unknown(f"nn.{layer.kind} of what isn't a tensor", *args)
    bound.update(parameters_of(vm, layer))
    op = name_of_layer(layer.kind)
    if op in LOSSES:
        bound["reduction"] = layer.args.get("reduction", Const("mean"))
    elif layer.kind == "Flatten":
        bound.update({"start_dim": Const(1), **layer.args})
    elif layer.kind.startswith("Adaptive"):
        bound.update(layer.args)
    if effect.writes and effect.writes[0] in bound and effect is modes.inplace:
        result = vm.operate(op, effect, bound, vm.at(node), "module")
        _tell_module(vm, layer, given[0], node)
        return result
    result = vm.operate(op, _without_buffer_writes(effect), bound, vm.at(node))
    _measure(layer, next(iter(bound.values())), result)
    return _nested(vm, layer, args[0], result) if isinstance(result, Seq) and args else result


def _nested(vm: Interpreter, layer: Layer, given: Value, result: Seq) -> Value:
    """What a recurrent layer returns: an LSTM's state is a pair, a packed sequence stays packed."""
    output, state = (*result.items, NONE)[:2]
    if layer.kind == "LSTM" and isinstance(state, Tensor):
        result.items[1] = Seq("tuple", [state, vm.output(state.node)])
    if is_packed(given):
        packed = Unknown("a packed sequence", (output,))
        packed.part, packed.origin = True, PACKED
        packed.children = {"data": output}
        result.items[0] = packed
    return result


PACKED = "torch.nn.utils.rnn.pack"


def is_packed(value: Value) -> bool:
    """Whether a value is a packed sequence, whose `.data` is what it holds."""
    return isinstance(value, Unknown) and value.origin.startswith(PACKED)


def _measure(layer: Layer, given: Value, result: Value) -> None:
    """Give what a layer returns the shape that its arguments say."""
    results = result.items if isinstance(result, Seq) else [result]
    if not isinstance(given, Tensor) or given.shape is None:
        return
    for i, one in enumerate(results):
        if isinstance(one, Tensor) and (shape := geometry.of_layer(layer.kind, layer.args, given.shape, i)):
            one.shape = shape


def _without_buffer_writes(effect: Effect) -> Effect:
    if not effect.writes:
        return effect
    return replace(effect, writes=())


def _tell_module(vm: Interpreter, layer: Layer, written: Value, node: ast.AST) -> None:
    """Say on the write which module did it."""
    if isinstance(written, Tensor) and written.storage.writes:
        write = written.storage.writes[-1]
        write.module, write.built = f"nn.{layer.kind}", layer.place
        if write.written is None:
            write.written = Written(aliased=vm.sees_write(written, vm.at(node)))


def _call_sequence(vm: Interpreter, layer: Layer, args: Sequence[Value], node: ast.AST) -> Value:
    value: Value = args[0] if args else Unknown("no argument")
    for item in (layer.items or {}).values():
        value = _apply(vm, item, value, node)
    return vm.unknown("a container that may hold more", value) if layer.open else value


def _apply(vm: Interpreter, item: Value, value: Value, node: ast.AST) -> Value:
    if isinstance(item, Undefined):
        return value
    if not isinstance(item, Alt):
        return vm.each(value, lambda one: vm.call(item, [one], {}, node))

    base = vm.path
    options = []
    for guard, option in item.options:
        both = meet(base, guard)
        if both is None:
            continue
        with vm.within(path=both):
            passes = isinstance(option, Undefined) or option is NONE
            options.append((guard, value if passes else vm.call(option, [value], {}, node)))
    return alternatives(options) if options else value
