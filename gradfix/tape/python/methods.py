"""Methods of what the interpreter itself models: containers, modules, optimizers, scalers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Instance, Super
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Number
from gradfix.tape.domain.torch_values import Group, Layer, Opaque, Optimizer, Scaler, Weights
from gradfix.tape.domain.values import NONE, Const, Map, Range, Seq, Unknown, unknown_of
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects.operations import having
from gradfix.tape.interpreter.occasions import Appended
from gradfix.tape.python.arguments import each_argument
from gradfix.tape.python.classes import base_init
from gradfix.tape.python.containers import mapping_method, sequence_method
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.conversions import number
from gradfix.tape.torch.layers import call_layer
from gradfix.tape.torch.module_methods import module_method
from gradfix.tape.torch.modules import freeze
from gradfix.tape.torch.optimizers import optimizer_method, scaler_method
from gradfix.tape.torch.param_groups import group_method, written

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Method
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.here import Here
    from gradfix.tape.machine.machine import Machine


def call_own_method(vm: Interpreter, method: Method, args: Args, kwargs: Kwargs, node: ast.AST) -> Value:
    """`receiver.name(...)` where the receiver is modelled."""
    receiver, name = method.receiver, method.name
    if isinstance(receiver, Super):
        return _super_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Layer) and name == "forward":  # without its hooks
        return each_argument(vm.forks, args, lambda some: call_layer(vm, receiver, some, kwargs, node))
    if isinstance(receiver, (Layer, Opaque)) or (isinstance(receiver, Instance) and receiver.module):
        return module_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Optimizer):
        return optimizer_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Scaler):
        return scaler_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Seq) and name == "append" and args and isinstance(node, ast.Call) and node.args:
        vm.tell(Appended(receiver, args[0], node))
    if isinstance(receiver, Seq):
        return sequence_method(vm, receiver, name, args)
    if isinstance(receiver, Map):
        return mapping_method(vm.trail, receiver, name, args, kwargs)
    if isinstance(receiver, Group):
        return group_method(vm.machine, receiver, name, args, kwargs)
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
