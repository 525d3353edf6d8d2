"""Classes of the source and their objects; nn.Module classes register what is assigned to them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from gradfix.tape.domain.definitions import Class, Function, Instance, Scope
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import External, Unknown, Value
from gradfix.tape.domain.within import Within
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.interpreter.imports import first_party
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.occasions import Built, Replaced
from gradfix.tape.interpreter.repeated_calls import past
from gradfix.tape.python.following import call_function
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.layers import make_layer


def make_class(vm: Interpreter, node: ast.ClassDef) -> Class:
    """Execute a class body in a scope of its own."""
    bases = [_known(vm, vm.eval(base)) for base in node.bases if not isinstance(base, ast.Starred)]
    cls = Class(node, bases, {}, vm.file)
    outer = vm.frame.scope
    scope = Scope(cls.attrs, outer if outer.outer is not None else None, outer.globals)
    with Within(vm.frame, vm.trail, {"scope": scope}):
        vm.run(node.body)
    for value in cls.attrs.values():
        if isinstance(value, Function) and value.owner is None:
            value.owner = cls
            value.scope = outer if value.scope.names is cls.attrs else value.scope
    vm.program.classes.append(cls)
    return cls


def _known(vm: Interpreter, base: Value) -> Value:
    """A base class of another file of the project, where that can be read."""

    if isinstance(base, External) and not base.path.startswith(("torch.", "builtins.")):
        return first_party(vm, base.path) or base
    return base


def is_module(cls: Class) -> bool:
    """Whether a class is an nn.Module, as far as its bases tell."""
    return any(path.startswith("torch.nn.") or _makes_modules(path) for path in cls.externals())


def _makes_modules(path: str) -> bool:
    """Whether a framework's class of this dotted name is an nn.Module."""
    row = ROWS.get(path.rpartition(".")[2])
    return row is not None and row.is_module(path)


def layer_base(cls: Class) -> str:
    """The torch.nn layer or container that a class extends, "" for a plain module."""
    for path in cls.externals():
        if path.startswith(("torch.nn.modules.", "torch.nn.")) and not path.endswith(".Module"):
            return path.rpartition(".")[2]
    return ""


FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")


def forward_only(cls: Class) -> bool:
    """Whether a class is a function of autograd that says nothing of a backward: made to be exported."""
    known = not any(cls.lookup(name) is not None for name in ("backward", "vjp", "jvp"))
    return known and not cls.opaque_base() and any(path in FUNCTIONS for path in cls.externals())


def instantiate(
    vm: Interpreter, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """`Class(...)`."""
    if any(path in FUNCTIONS for path in cls.externals()):
        return Unknown("a custom autograd function")
    instance = Instance(cls, is_module(cls))
    init = cls.lookup("__init__")
    if isinstance(init, Function):
        before = past(vm, init, [instance, *args], kwargs)
        if before is not None and before.enough(vm.share):
            return Unknown("an object like many before", (*args, *kwargs.values()))
        call_function(vm, init, [instance, *args], kwargs, node, receiver=instance)
        if instance.module:
            vm.tell(Built(instance))
    elif layer_base(cls):
        base_init(vm, instance, args, kwargs, node)
    else:
        _fields(vm, instance, args, kwargs)
        if cls.opaque_base():
            for value in (*args, *kwargs.values()):
                escape(vm, value)
    return instance


def _fields(vm: Interpreter, instance: Instance, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
    """Dataclass and namedtuple fields."""
    names = [
        statement.target.id
        for statement in instance.cls.node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        vm.trail.put(instance, instance.attrs, name, value)


def base_init(
    vm: Interpreter, instance: Instance, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> None:
    """`super().__init__(...)` of a class that extends a layer or container of torch.nn."""

    kind = layer_base(instance.cls)
    if kind:
        vm.trail.put(instance, instance.attrs, "<layer>", make_layer(vm, kind, args, kwargs, node))


def registering(vm: Interpreter, owner: Instance, name: str, value: Value, node: ast.AST) -> None:
    """Note a module replaced after an optimizer took its parameters."""

    old = owner.attrs.get(name)
    if owner.module and isinstance(old, (Layer, Instance, Opaque)) and old is not value:
        vm.tell(Replaced(old, value, node))
    if (
        isinstance(value, Unknown)
        and value.origin
        and owner.module
        and value.module is None
        and value.requires is None
    ):
        vm.trail.learn(value, "built", True)
