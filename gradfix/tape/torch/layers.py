"""The modules of torch.nn: built from the table, called by their effect, containers by their items."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.defects.written import Written
from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.definitions import Instance, Method
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.narrowing import narrowed
from gradfix.tape.domain.paths import meet
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import (
    FALSE,
    NONE,
    NOTHING,
    Alt,
    Const,
    Map,
    Seq,
    Undefined,
    Unknown,
    unknown_of,
)
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects import geometry, table
from gradfix.tape.effects.contractions import LOSSES
from gradfix.tape.effects.operations import layers_having, layers_told, name_of_layer
from gradfix.tape.interpreter.conditions import truth
from gradfix.tape.interpreter.granted import leaning_on_it, taken_for, training, trains
from gradfix.tape.interpreter.occasions import Replaced
from gradfix.tape.torch.modules import OWN_DICTS, own_dict
from gradfix.tape.torch.weights import FLAG_OFF, parameters_of, weights

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import Effect, ModuleEffect
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import (
        Value,
    )
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Notes
    from gradfix.tape.machine.here import Here
    from gradfix.tape.machine.results import Results

CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
DROPS = layers_having("drops")
TRANSPOSES = layers_told("transposes")


def make_layer(
    notes: Notes, kind: str, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """`nn.Kind(...)`."""
    place = notes.here.at(node)
    if kind in CONTAINERS:
        return _container(notes.here, kind, args, kwargs, node)
    effect = table.module(kind)
    if effect is None:
        return Opaque(Unknown(Why(What.OPERATION, f"nn.{kind}")), weights(notes.machine, node), NOTHING)
    bound = {
        **dict(zip(effect.init, args, strict=False)),
        **{k: v for k, v in kwargs.items() if k in effect.init},
    }
    layer = Layer(kind, effect, bound, place)
    flag = bound.get("inplace")
    if flag is None or effect.inplace is None:
        return layer
    known, yes, no = truth(notes, flag, _inplace_argument(node))
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


def _container(
    here: Here, kind: str, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Layer:
    layer = Layer(kind, None, {}, here.at(node))
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


def layer_attribute(notes: Notes, layer: Layer, name: str) -> Value:
    """An attribute of a layer of torch.nn."""
    parameters_of(notes.machine, layer)
    value = layer.attrs.get(name)
    if isinstance(value, Alt):
        return narrowed(value, notes.here.path)
    if value is not None:
        return value
    if layer.items is not None and name in layer.items:
        return layer.items[name]
    if name in layer.args:
        return layer.args[name]
    if layer.effect is not None and name in layer.effect.buffers:
        buffer = notes.machine.graph.leaf(layer.place, False)
        layer.attrs[name] = buffer
        return buffer
    if name == "training":
        return training(notes, layer)
    if name == "inplace" and layer.inplace is not None:
        return Const(layer.inplace)
    if layer.effect is not None and name in FLAG_OFF:
        return NONE
    return own_dict(layer, name) if name in OWN_DICTS else Method(layer, name)


MEMBERS = (Layer, Instance, Opaque, Unknown)
"""What becomes a part of a container as its attribute, or may do so."""


def store_on_layer(vm: Interpreter, layer: Layer, name: str, value: Value, node: ast.AST) -> None:
    """`layer.name = value`: `inplace` set afterwards, a parameter or submodule put in."""

    if name == "inplace":
        wanted = bool(value.value) if isinstance(value, Const) else None
        vm.trail.set(layer, "inplace", wanted)
        vm.trail.set(layer, "place", vm.here.at(node))
        return
    if layer.effect is not None and name in layer.effect.init:
        vm.trail.put(layer, layer.args, name, value)
    old = layer.attrs.get(name)
    if isinstance(old, (Layer, Instance, Opaque, Tensor)):
        vm.tell(Replaced(old, value, node))
    if layer.items is not None and (name in layer.items or isinstance(value, MEMBERS)):
        vm.trail.set(layer, "items", {**layer.items, name: value})
    vm.trail.put(layer, layer.attrs, name, value)


def call_layer(
    vm: Interpreter, layer: Layer, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """Run a layer's forward."""
    if layer.items is not None:
        if layer.lean:
            return _call_by_its_book(vm, layer, args, kwargs, node)
        return _call_sequence(vm, layer, args, node)
    if layer.effect is None:
        return unknown_of(Why(What.OPERATION, f"nn.{layer.kind} isn't known"), *args)
    modes = layer.effect
    if modes.eval is not modes.train and trains(vm.notes, layer):
        lean = taken_for(vm.notes, layer)
        return leaning_on_it(vm.notes, lambda: _run_layer(vm, layer, modes, args, kwargs, node), lean)
    return _run_layer(vm, layer, modes, args, kwargs, node)


def _dropping(notes: Notes, layer: Layer, node: ast.AST) -> Path:
    """When a layer that drops in place writes at all: not where it drops none, as who builds it may say."""
    p = layer.args.get("p") if layer.kind in DROPS else None
    if not isinstance(p, Unknown):
        return notes.here.path
    _, yes, _ = truth(notes, p, node if isinstance(node, ast.expr) else ast.Constant(None))
    notes.reports.findings.unlikely.update(yes)
    return notes.here.path | yes


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
    given = [vm.graph.tensor_of(arg) if isinstance(arg, Unknown) else arg for arg in args[:1]] + list(
        args[1:]
    )
    bound: dict[str, Value] = dict(zip(effect.args, given, strict=False))
    bound.update({name: value for name, value in kwargs.items() if name in effect.args})
    if not bound or not isinstance(next(iter(bound.values())), Tensor):
        return unknown_of(Why(What.OPERATION, f"nn.{layer.kind} of what isn't a tensor"), *args)
    bound.update(parameters_of(vm.machine, layer))
    op = name_of_layer(layer.kind)
    if op in LOSSES:
        bound["reduction"] = layer.args.get("reduction", Const("mean"))
    elif layer.kind == "Flatten":
        bound.update({"start_dim": Const(1), **layer.args})
    elif layer.kind.startswith("Adaptive"):
        bound.update(layer.args)
    if effect.writes and effect.writes[0] in bound and effect is modes.inplace:
        with vm.here.within(path=_dropping(vm.notes, layer, node)):
            result = vm.forks.operate(op, effect, bound, vm.here.at(node), "module")
        _tell_module(vm, layer, given[0], node)
        return result
    result = vm.forks.operate(op, _without_buffer_writes(effect), bound, vm.here.at(node))
    if op in LOSSES and isinstance(result, Tensor):
        _tell_criterion(vm, layer, result, node)
    _order(vm, layer, result)
    _measure(layer, next(iter(bound.values())), result)
    return _nested(vm.machine.results, layer, args[0], result) if isinstance(result, Seq) and args else result


def _nested(results: Results, layer: Layer, given: Value, result: Seq) -> Value:
    """What a recurrent layer returns: an LSTM's state is a pair, a packed sequence stays packed."""
    output, state = (*result.items, NONE)[:2]
    if layer.kind == "LSTM" and isinstance(state, Tensor):
        cell = results.output(state.node)
        cell.shape = state.shape
        result.items[1] = Seq("tuple", [state, cell])
    if is_packed(given):
        packed = Unknown(Why(What.COMPUTED, "a packed sequence"), (output,))
        packed.part, packed.origin = True, PACKED
        packed.children = {"data": output}
        result.items[0] = packed
    return result


PACKED = "torch.nn.utils.rnn.pack"


def is_packed(value: Value) -> bool:
    """Whether a value is a packed sequence, whose `.data` is what it holds."""
    return isinstance(value, Unknown) and value.origin.startswith(PACKED)


def _order(vm: Interpreter, layer: Layer, result: Value) -> None:
    """Forget that what a layer returns is contiguous where it may have exchanged the batch and the time."""
    flag = layer.args.get(TRANSPOSES.get(layer.kind, ""), FALSE)
    first = result.items[0] if isinstance(result, Seq) and result.items else None
    if isinstance(first, Tensor) and not (isinstance(flag, Const) and not flag.value):
        vm.trail.set(first, "layout", None)


def _measure(layer: Layer, given: Value, result: Value) -> None:
    """Give what a layer returns the shape that its arguments say."""
    results = result.items if isinstance(result, Seq) else [result]
    if not isinstance(given, Tensor):
        return
    if given.shape is None:
        for one in results if geometry.is_wide(layer.kind, layer.args) else ():
            if isinstance(one, Tensor):
                one.node.facts = {**(one.node.facts or {}), "several": True}
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
        place = vm.here.at(node)
        known = write.written or Written(aliased=vm.sees_write(written, place))
        write.written = replace(known, aliased=known.aliased or vm.names.read_again(place))


def _tell_criterion(vm: Interpreter, layer: Layer, result: Tensor, node: ast.AST) -> None:
    """Say on a loss that isn't reduced which module made it, and of the module where it is called."""
    place, here, findings = layer.place, vm.here.at(node), vm.reports.findings
    if place is not None and here is not None and (result.node.facts or {}).get("unreduced"):
        result.node.facts = {**(result.node.facts or {}), "criterion": place}
        findings.unreduced.setdefault(findings.where(place), {})[findings.where(here)] = None


def _call_by_its_book(
    vm: Interpreter, layer: Layer, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """A module of another library, by what that says it does with one argument."""
    if len(args) != 1 or kwargs:
        return unknown_of(Why(What.OPERATION, f"{layer.kind} with these arguments"), *args)
    with vm.reports.within(granted=vm.reports.granted | layer.lean):
        return _call_sequence(vm, layer, args, node)


MORE = Why(What.ELEMENT, "a container that may hold more")


def _call_sequence(vm: Interpreter, layer: Layer, args: Sequence[Value], node: ast.AST) -> Value:
    value: Value = args[0] if args else Unknown(fact("no argument"))
    for item in (layer.items or {}).values():
        value = _apply(vm, item, value, node)
        if layer.open:  # anywhere
            value = unknown_of(MORE, value)
    return unknown_of(MORE, value) if layer.open else value


def _apply(vm: Interpreter, item: Value, value: Value, node: ast.AST) -> Value:
    if isinstance(item, Undefined):
        return value
    if not isinstance(item, Alt):
        return vm.forks.each(value, lambda one: vm.call(item, [one], {}, node))

    base = vm.here.path
    options = []
    for guard, option in item.options:
        both = meet(base, guard)
        if both is None:
            continue
        with vm.here.within(path=both):
            passes = isinstance(option, Undefined) or option is NONE
            options.append((guard, value if passes else vm.call(option, [value], {}, node)))
    return alternatives(options) if options else value
