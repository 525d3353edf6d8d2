"""Methods of what the interpreter itself models: containers, modules, optimizers, scalers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import one_of, or_else
from gradfix.tape.domain.definitions import Instance, Super
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number
from gradfix.tape.domain.narrowing import paired, there
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Scaler, Weights
from gradfix.tape.domain.values import NONE, Const, Map, Range, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.occasions import Appended
from gradfix.tape.python.classes import base_init
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.conversions import number
from gradfix.tape.torch.elements import elements, part
from gradfix.tape.torch.layers import call_layer
from gradfix.tape.torch.module_methods import module_method
from gradfix.tape.torch.modules import freeze
from gradfix.tape.torch.optimizers import optimizer_method, scaler_method
from gradfix.tape.torch.param_groups import group_method, written

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Method
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.here import Here
    from gradfix.tape.machine.machine import Machine


def call_own_method(vm: Interpreter, method: Method, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`receiver.name(...)` where the receiver is modelled."""
    receiver, name = method.receiver, method.name
    if isinstance(receiver, Super):
        return _super_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, (Layer, Opaque)) or (isinstance(receiver, Instance) and receiver.module):
        return module_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Optimizer):
        return optimizer_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Scaler):
        return scaler_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Seq) and name == "append" and args and isinstance(node, ast.Call) and node.args:
        vm.tell(Appended(receiver, args[0], node))
    if isinstance(receiver, Seq):
        return _sequence_method(vm, receiver, name, args)
    if isinstance(receiver, Map):
        return _mapping_method(vm.trail, receiver, name, args)
    if isinstance(receiver, Group):
        return group_method(vm.machine.gradients, receiver, name, args)
    if isinstance(receiver, Weights):
        return _weights_method(vm.machine, receiver, name, args, node)
    if isinstance(receiver, Number):
        if name == "backward":
            event = Backward(vm.here.at(node), vm.here.path, False, False, frozenset())
            vm.machine.severed.severed(
                receiver.node, event, receiver.node.lean, "'float' object has no attribute 'backward'"
            )
        return (
            number(vm.machine, receiver, name, node)
            if name in ("item", "tolist")
            else _computed(vm.here, receiver, node)
        )
    if isinstance(receiver, (Const, Range)):
        return _constant_method(receiver, name, args)
    for value in (receiver, *args, *kwargs.values()):
        escape(vm.strangers, value)
    return unknown_of(Why(What.OPERATION, f"`.{name}()` isn't known"), *args)


def _computed(here: Here, receiver: Number, node: ast.AST) -> Value:
    return Number(receiver.node, here.at(node), receiver.kind)


OF_TEXT = frozenset({
    "lower", "upper", "strip", "startswith", "endswith", "split", "rsplit", "partition", "rpartition",
    "replace", "removeprefix", "removesuffix",
})  # fmt: skip
"""Methods of strings that are run as they are."""


def _constant_method(receiver: Value, name: str, args: Args) -> Value:
    known = [arg.value for arg in args if isinstance(arg, Const)]
    simple = name in OF_TEXT and len(known) == len(args)
    if simple and isinstance(receiver, Const) and isinstance(receiver.value, str):
        try:
            made = getattr(receiver.value, name)(*known)
        except (TypeError, ValueError):
            return Unknown(fact("text"))
        if isinstance(made, (list, tuple)):
            return Seq(type(made).__name__, [Const(part) for part in made])
        return Const(made)
    return Unknown(fact("a plain value"))


def _super_method(
    vm: Interpreter, receiver: Super, name: str, args: Args, kwargs: Kwargs, node: ast.AST
) -> Value:

    instance = receiver.receiver
    if not isinstance(instance, Instance):
        return Unknown(fact("super()"))
    if name == "__init__":
        base_init(vm.notes, instance, args, kwargs, node)
        return NONE
    layer = instance.attrs.get("<layer>")
    if name in ("forward", "__call__") and isinstance(layer, Layer):
        return call_layer(vm, layer, args, kwargs, node)
    if name == "train" and instance.module:
        return instance
    if instance.module:
        return module_method(vm, instance, name, args, kwargs, node)
    for value in (instance, *args):
        escape(vm.strangers, value)
    return unknown_of(Why(What.IMPORT, "a method of a base"), *args)


GROW = frozenset({"append", "extend", "insert"})
"""What makes a list longer."""


def _sequence_method(vm: Interpreter, receiver: Seq, name: str, args: Args) -> Value:
    items = receiver.items
    if name in ("pop", "insert") and not all(map(there, items)):
        vm.trail.set(receiver, "items", [one_of(item) for item in items])
        vm.trail.set(receiver, "open", True)
    if name in GROW and receiver.born < vm.machine.tested.cut:
        vm.machine.tested.grown[id(receiver)] = receiver
    if name == "append" and args:
        if len(items) < 256:
            vm.trail.set(receiver, "items", [*items, args[0]])
        else:
            vm.trail.set(receiver, "open", True)
        return NONE
    if name == "extend" and args:
        more, known = elements(vm, args[0], receiver.place) if receiver.place else (None, False)  # type: ignore[arg-type]
        if isinstance(args[0], Seq):
            more, known = args[0].items, not args[0].open
        vm.trail.set(receiver, "items", [*items, *(more if more is not None else [part(args[0])])])
        if not known:
            vm.trail.set(receiver, "open", True)
        return NONE
    if name == "insert" and len(args) > 1:
        place = args[0].value if isinstance(args[0], Const) and isinstance(args[0].value, int) else 0
        vm.trail.set(receiver, "items", [*items[:place], args[1], *items[place:]])
        if not isinstance(args[0], Const):
            vm.trail.set(receiver, "open", True)  # between any two of them
        return NONE
    if name == "pop" and items and not receiver.open:
        at = args[0].value if args and isinstance(args[0], Const) else -1
        if isinstance(at, int) and -len(items) <= at < len(items):
            left = list(items)
            taken = left.pop(at)
            vm.trail.set(receiver, "items", left)
            return taken
    if name == "clear":
        vm.trail.set(receiver, "items", [])
        vm.trail.set(receiver, "open", False)
        vm.machine.tested.grown.pop(id(receiver), None)
        return NONE
    if name == "copy":
        return Seq(receiver.kind, list(items), receiver.open)
    if name in ("reverse", "sort", "remove", "add"):
        vm.trail.set(receiver, "items", [*items, *args] if name == "add" else list(reversed(items)))
        vm.trail.set(receiver, "open", True)
        return NONE
    return unknown_of(Why(What.ELEMENT, "an element or a fact of a list"), *items)


def _mapping_method(trail: Trail, receiver: Map, name: str, args: Args) -> Value:
    items = receiver.items
    if name in ("get", "pop", "setdefault") and args:
        default = args[1] if len(args) > 1 else NONE
        if isinstance(args[0], Const) and args[0].value in items:
            return or_else(items[args[0].value], default)
        return (
            default
            if isinstance(args[0], Const) and not receiver.open
            else unknown_of(Why(What.ELEMENT, "an entry"), *items.values())
        )
    if name == "items":
        return Seq("list", [paired(_key(key), value) for key, value in items.items()], receiver.open)
    if name == "values":
        return Seq("list", list(items.values()), receiver.open)
    if name == "keys":
        return Seq("list", [_key(key) for key in items], receiver.open)
    if name == "update":
        merged = dict(items)
        for arg in args:
            if isinstance(arg, Map):
                merged.update(arg.items)
            if not isinstance(arg, Map) or arg.open:
                trail.set(receiver, "open", True)
        trail.set(receiver, "items", merged)
        return NONE
    if name == "copy":
        return Map(dict(items), receiver.open)
    return unknown_of(Why(What.ELEMENT, "an entry or a fact of a dict"), *items.values())


def _key(key: object) -> Value:
    return Unknown(fact("a key")) if isinstance(key, tuple) and key and key[0] == "unknown" else Const(key)


VALUES = having("kept") | having("detaches")
"""What gives the value of a parameter."""


def _weights_method(machine: Machine, receiver: Weights, name: str, args: Args, node: ast.AST) -> Value:
    if name == "requires_grad_":
        freeze(machine, receiver, args[0] if args else Const(True), machine.here.at(node))
        return receiver
    if name.endswith("_"):
        written(machine, receiver, node)
        return receiver
    if name in VALUES:
        return Unknown(
            Why(What.COMPUTED, "a parameter's value"),
            (receiver,),
            requires=False if name == "detach" else None,
        )
    return Unknown(fact("a parameter's fact"), (receiver,))
