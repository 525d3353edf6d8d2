"""Reading and writing attributes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.spelling import SWITCH
from gradfix.tape.domain.alternatives import wide
from gradfix.tape.domain.definitions import Bound, Class, Function, Instance, Method, Package, Super
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.narrowing import narrowed
from gradfix.tape.domain.torch_values import Layer, Opaque, Optimizer, Weights
from gradfix.tape.domain.values import Alt, Const, External, Map, Seq, Undefined, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.effects import table
from gradfix.tape.interpreter.granted import training
from gradfix.tape.interpreter.imports import canonical, member
from gradfix.tape.interpreter.occasions import AttributeBound, PutSomewhere, Replaced, SwitchAsked
from gradfix.tape.strangers.assumed_optimizers import doubted
from gradfix.tape.strangers.data_alone import may_be_told
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.strangers.kept import keep
from gradfix.tape.strangers.unknowns import MEASURES
from gradfix.tape.torch.layers import is_packed, layer_attribute, store_on_layer
from gradfix.tape.torch.module_methods import MODULE_METHODS
from gradfix.tape.torch.modules import OWN_DICTS, all_of, freeze, own_dict
from gradfix.tape.torch.param_groups import (
    param_groups,
    some_gradient,
    some_leaf,
    store_on_optimizer,
    written,
)
from gradfix.tape.torch.tensor_attributes import store_on_tensor, tensor_attribute

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.machine.machine import Machine

FIELDS = {
    "values": 0, "indices": 1, "U": 0, "S": 1, "Vh": 2, "V": 2, "Q": 0, "R": 1, "eigenvalues": 0,
    "eigenvectors": 1, "sign": 0, "logabsdet": 1, "solution": 0,
}  # fmt: skip
"""What torch calls the parts of the tuples that its operations return."""


def load_attribute(vm: Interpreter, owner: Value, name: str, node: ast.AST) -> Value:
    """`owner.name`."""
    if name == "grad":
        doubted(vm.strangers, None)
    if name == "module" and id(owner) in vm.notes.parallel and not _has_own(owner, name):
        return owner
    if name == SWITCH and isinstance(owner, (Instance, Layer, Opaque, Unknown)):
        vm.tell(SwitchAsked(owner, node))
    if isinstance(owner, Unknown):
        if name == "grad" and owner.tensor is None:
            some_gradient(vm.machine, owner)
        return unknown_attribute(vm, owner, name, node)
    if isinstance(owner, External):
        return External(canonical(f"{owner.path}.{name}"))
    if isinstance(owner, Package):
        return member(vm, owner, name) or Unknown(Why(What.ATTRIBUTE, f"`{name}` of another file"))
    if isinstance(owner, Instance):
        return instance_attribute(vm, owner, name, node)
    if isinstance(owner, Tensor):
        return tensor_attribute(vm, owner, name, node)
    if isinstance(owner, Layer):
        return layer_attribute(vm.notes, owner, name)
    if isinstance(owner, Super):
        return super_attribute(owner, name)
    if isinstance(owner, Class):
        found = owner.lookup(name)
        return found if found is not None else Unknown(Why(What.ATTRIBUTE, f"`{name}` of a class"))
    if isinstance(owner, Opaque):
        if name not in owner.children:
            vm.trail.written.note(owner)
            owner.children[name] = Unknown(
                Why(What.ATTRIBUTE, f"`{name}` of a module that isn't known"), (owner,), lean=owner.lean
            )
        return owner.children[name]
    if isinstance(owner, (Function, Bound)):
        return Unknown(Why(What.ATTRIBUTE, f"`{name}` of a function"), (owner,))
    if isinstance(owner, Optimizer) and name in owner.own:
        return owner.own[name]
    if isinstance(owner, Optimizer) and name == "param_groups":
        return param_groups(owner)
    if isinstance(owner, Optimizer) and name in ("state", "defaults"):
        return Unknown(fact("an optimizer's state"))
    if isinstance(owner, Seq) and owner.kind == "tuple" and -1 < FIELDS.get(name, -1) < len(owner.items):
        return owner.items[FIELDS[name]]
    if isinstance(owner, Weights):
        return weights_attribute(owner, name, node)
    return Method(owner, name)


def _is_field(owner: Instance, name: str) -> bool:
    """Whether an attribute of a class is declared with a type, below a base that isn't known."""
    if owner.module or not owner.cls.opaque_base():
        return False
    declared = (
        one.target for cls in owner.cls.order for one in cls.node.body if isinstance(one, ast.AnnAssign)
    )
    return any(isinstance(target, ast.Name) and target.id == name for target in declared)


def _has_own(owner: Value, name: str) -> bool:
    """Whether a module has an attribute of this name itself."""
    if isinstance(owner, Instance):
        return name in owner.attrs or owner.cls.lookup(name) is not None
    return isinstance(owner, Layer) and (name in owner.attrs or name in (owner.items or ()))


def weights_attribute(owner: Value, name: str, node: ast.AST) -> Value:
    """An attribute of a parameter that stands for all of them."""
    assert isinstance(owner, Weights)
    if name == "grad":
        tensor = Unknown(Why(What.COMPUTED, "a parameter's gradient"), (owner,), requires=False)
        tensor.origin = "grad"
        return tensor
    if name == "data":
        values = Unknown(Why(What.COMPUTED, "a parameter's data"), (owner,), requires=False)
        values.origin = "data"
        return values
    computed = bool(table.method(name)) and name not in MEASURES
    made_of = (owner, *owner.leaves) if computed else ()
    return Unknown(Why(What.ATTRIBUTE, f"`{name}` of a parameter"), made_of)


def instance_attribute(vm: Interpreter, owner: Instance, name: str, node: ast.AST) -> Value:
    """An object's own attribute, its class's, or one that isn't known."""
    value = owner.attrs.get(name)
    if id(owner) in vm.notes.stand_ins and _left_open(value or owner.cls.lookup(name)):
        vm.machine.severed.left_open.setdefault(name, Why(What.SUBCLASS))
    if value is not None and not isinstance(value, Undefined):
        if isinstance(value, Alt):
            return narrowed(value, vm.here.path)
        return value
    found = owner.cls.lookup(name)
    if isinstance(found, Function):
        return _bound(vm, owner, found, node)
    if type(found) is Const and _is_field(owner, name):  # which a base that isn't read may fill
        vm.trail.put(
            owner, owner.attrs, name, Unknown(Why(What.ATTRIBUTE, f"`{name}` of an object"), (found,))
        )
        return owner.attrs[name]
    if found is not None:
        return found
    if not owner.module and isinstance(asked := owner.cls.lookup("__getattr__"), Function):
        return vm.call(Bound(owner, asked), [Const(name)], {}, node)
    if name == "training" and owner.module:
        return training(vm.notes, owner)
    layer = owner.attrs.get("<layer>")
    if isinstance(layer, Layer):
        return layer_attribute(vm.notes, layer, name)
    if owner.module and name in MODULE_METHODS:
        return Method(owner, name)
    if owner.module and name in OWN_DICTS:
        return own_dict(owner, name)
    if any(isinstance(base, External) for base in _bases(owner.cls)) or owner.cls.bases:
        missing = Unknown(Why(What.ATTRIBUTE, f"`{name}` of an object"), (owner,) if not owner.module else ())
        vm.reports.findings.texts.setdefault(("true", id(missing)), f"self.{name}")
        owner.attrs[name] = missing
        return missing
    return Method(owner, name) if name.startswith("__") else _missing(owner, name)


def _left_open(value: Value | None) -> bool:
    """Whether an attribute is empty, or a method that does nothing: a subclass may well have its own, and
    whoever uses the object may fill it."""
    if isinstance(value, Function):
        body = value.code.node.body
        return isinstance(body, list) and all(map(_does_nothing, body))
    if isinstance(value, (Seq, Map, Layer)):
        return value.items is not None and not value.items
    return isinstance(value, Const) and value.value is None


def _does_nothing(statement: ast.stmt) -> bool:
    constant = isinstance(statement, (ast.Expr, ast.Return)) and isinstance(
        statement.value, (ast.Constant, type(None))
    )
    return constant or isinstance(statement, (ast.Pass, ast.Raise))


def _bases(cls: Class) -> list[Value]:
    return cls.bases + [base for one in cls.bases if isinstance(one, Class) for base in _bases(one)]


def _missing(owner: Instance, name: str) -> Value:
    missing = Unknown(Why(What.ATTRIBUTE, f"`{name}` of an object"))
    owner.attrs[name] = missing
    return missing


def _bound(vm: Interpreter, owner: Instance, found: Function, node: ast.AST) -> Value:
    kinds = {value.path for value, _ in found.decorators if isinstance(value, External)}
    if "staticmethod" in kinds or "builtins.staticmethod" in kinds:
        return found
    if kinds & {"builtins.property", "functools.cached_property"}:
        return vm.call(Bound(owner, found), [], {}, node)
    if "builtins.classmethod" in kinds:
        return Bound(owner.cls, found)
    return Bound(owner, found)


def super_attribute(owner: Super, name: str) -> Value:
    """A method found above a class."""
    of = owner.receiver.cls if isinstance(owner.receiver, Instance) else owner.receiver
    order = of.order if isinstance(of, Class) and owner.cls in of.order else ()
    if owner.cls is not None:
        order = order[order.index(owner.cls) + 1 :] if order else owner.cls.order[1:]
    for cls in order:
        if isinstance(found := cls.attrs.get(name), Function):
            return Bound(owner.receiver, found)
    return Method(owner, name)


def unknown_attribute(vm: Interpreter, owner: Unknown, name: str, node: ast.AST) -> Value:
    """An attribute of what isn't known: the same unknown each time."""
    packed = name == "data" and is_packed(owner)
    if (
        owner.tensor is not None
        and not packed
        and (table.method(name) or name in ("data", "grad", "requires_grad", "shape"))
    ):
        return tensor_attribute(vm, owner.tensor, name, node)
    if name == "data" and not packed and (owner.requires is True or owner.part):
        return tensor_attribute(vm, vm.graph.tensor_of(owner), name, node)
    if name == "data" and owner.options and owner.tensor is None and not wide(owner):
        return vm.forks.each(Alt(owner.options), lambda one: load_attribute(vm, one, name, node))
    value = owner.children.get(name) if owner.children is not None else None
    named = owner.holds[0] if owner.origin == "torch.device" and owner.holds and name == "type" else None
    if isinstance(named, Const) and isinstance(named.value, str):
        return Const(named.value.partition(":")[0])
    if value is None:
        child = Unknown(Why(What.ATTRIBUTE, f"`{name}`", None, owner.why), (owner,), lean=owner.lean)
        child.part = owner.part or owner.requires is not None
        child.requires = False if owner.requires is False else None
        child.origin = f"{owner.origin}.{name}" if owner.origin else ""
        vm.trail.learn_part(owner, "children", name, child)
        value = child
        if isinstance(node, ast.Attribute):
            vm.reports.findings.texts.setdefault(("true", id(child)), vm.reports.text(node))
    if isinstance(value, Alt):
        return narrowed(value, vm.here.path)
    return value


def store_attribute(
    vm: Interpreter, owner: Value, name: str, value: Value, node: ast.AST, augmented: bool
) -> None:
    """`owner.name = value`."""
    if name == "grad":
        doubted(vm.strangers, None)
    vm.tell(AttributeBound(owner, name, value, node))
    if isinstance(owner, Tensor):
        store_on_tensor(vm, owner, name, value, node, augmented)
    elif isinstance(owner, Instance):
        found = owner.cls.lookup(name)
        if isinstance(found, Function) and found.setter is not None:
            vm.call(Bound(owner, found.setter), [value], {}, node)
            return
        if isinstance(owner.cls.lookup("__setattr__"), Function):
            escape(vm.strangers, value)
            value = Unknown(
                Why(What.ATTRIBUTE, f"`{name}` of an object that decides what is stored"), (value,)
            )
        _registering(vm, owner, name, value, node)
        vm.trail.put(owner, owner.attrs, name, value)
    elif isinstance(owner, Layer):
        store_on_layer(vm, owner, name, value, node)
    elif isinstance(owner, Class):
        vm.trail.put(owner, owner.attrs, name, value)
    elif isinstance(owner, Opaque):
        vm.trail.put(owner, owner.children, name, value)
    elif isinstance(owner, Optimizer):
        escape(vm.strangers, value)
        store_on_optimizer(vm.machine, owner, name, value)
    elif isinstance(owner, Unknown):
        if name == "requires_grad":
            some_leaf(vm.machine, owner, value)
        if name == "requires_grad" and owner.module is None and isinstance(value, Const) and value.value:
            vm.graph.tensor_of(owner)  # what is no tensor learns nothing from it
        if name == "requires_grad":
            may_be_told(vm.strangers, [owner])
        if name == "requires_grad" and owner.tensor is None and owner.module is None:
            vm.reports.silence(vm.here.at(node), "whether this is a parameter isn't known", owner.made)
        if owner.tensor is not None:
            store_on_tensor(vm, owner.tensor, name, value, node, augmented)
        elif name == "grad":
            some_gradient(vm.machine, owner)
        if owner.children is None:
            vm.trail.learn(owner, "children", {})
        vm.graph.put_into(owner, value)
        if owner.holds:
            vm.tell(PutSomewhere(owner, value, node))
        keep(vm.strangers, owner, [value])
        if isinstance(value, (Layer, Instance)):
            escape(vm.strangers, value)  # who has that may have it registered
        assert owner.children is not None
        vm.trail.put(owner, owner.children, name, value)
    else:
        _store_on_weights(vm.machine, owner, name, value, node)


def _store_on_weights(machine: Machine, owner: Value, name: str, value: Value, node: ast.AST) -> None:
    if isinstance(owner, Weights):
        if name == "requires_grad":
            freeze(machine, owner, value, machine.here.at(node))
        elif name == "data":
            written(machine, owner, node)
        elif name == "grad":
            none = isinstance(value, Const) and value.value is None
            machine.gradients.clear(
                owner.leaves, machine.here.at(node), must=none and all_of(machine.here, owner)
            )


def _registering(vm: Interpreter, owner: Instance, name: str, value: Value, node: ast.AST) -> None:
    """Note a module replaced after an optimizer took its parameters, in a module or in what trains one."""
    old = owner.attrs.get(name)
    if isinstance(old, (Layer, Instance, Opaque)) and old is not value:
        vm.tell(Replaced(old, value, node))
    if (
        isinstance(value, Unknown)
        and value.origin
        and owner.module
        and value.module is None
        and value.requires is None
    ):
        vm.trail.learn(value, "built", True)
