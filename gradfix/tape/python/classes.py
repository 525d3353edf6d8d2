"""Classes of the source and their objects; nn.Module classes register what is assigned to them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.definitions import Bound, Class, Function, Instance, Scope
from gradfix.tape.domain.values import External, Seq, Unknown
from gradfix.tape.domain.why import Why, thing
from gradfix.tape.domain.within import Within
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.interpreter.imports import first_party
from gradfix.tape.interpreter.occasions import Built
from gradfix.tape.interpreter.repeated_calls import past
from gradfix.tape.python.module_shapes import has_its_shape, leaning_on_shape
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.layers import make_layer

if TYPE_CHECKING:
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Notes


def make_class(vm: Interpreter, node: ast.ClassDef) -> Class:
    """Execute a class body in a scope of its own."""
    bases = [_known(vm, vm.eval(base)) for base in node.bases if not isinstance(base, ast.Starred)]
    cls = Class(node, bases, {}, vm.here.file)
    outer = vm.names.frame.scope
    scope = Scope(cls.attrs, outer if outer.outer is not None else None, outer.globals)
    with Within(vm.names.frame, vm.trail, {"scope": scope}):
        vm.run(node.body)
    for value in cls.attrs.values():
        if isinstance(value, Function) and value.owner is None:
            for one in (value, value.wrapped, value.setter):
                if one is not None:
                    one.owner = cls
                    one.scope = outer if one.scope.names is cls.attrs else one.scope
    vm.program.classes.append(cls)
    return cls


def _known(vm: Interpreter, base: Value) -> Value:
    """A base class of another file of the project, where that can be read."""

    if isinstance(base, External) and not base.path.startswith(("torch.", "builtins.")):
        return first_party(vm, base.path) or base
    return base


def is_module(cls: Class) -> bool:
    """Whether a class is an nn.Module, as far as its bases tell, or what it is made like."""
    known = any(path.startswith("torch.nn.") or _makes_modules(path) for path in cls.externals())
    return known or has_its_shape(cls)


def _makes_modules(path: str) -> bool:
    """Whether a framework's class of this dotted name is an nn.Module."""
    row = ROWS.get(path.rpartition(".")[2])
    return row is not None and row.is_module(path)


PLAIN = frozenset({"Module", "_Loss", "_WeightedLoss"})
"""What torch.nn has to be extended that brings no parameters of its own."""


def layer_base(cls: Class) -> str:
    """The torch.nn layer or container that a class extends, "" for a plain module."""
    for path in cls.externals():
        name = path.rpartition(".")[2]
        if path.startswith(("torch.nn.modules.", "torch.nn.")) and name not in PLAIN:
            return name
    return ""


def forward_only(cls: Class) -> bool:
    """Whether a class is a function of autograd that says nothing of a backward: made to be exported."""
    known = not any(cls.lookup(name) is not None for name in ("backward", "vjp", "jvp"))
    return known and not cls.opaque_base() and "torch.autograd.Function" in cls.externals()


def instantiate(
    vm: Interpreter, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> Value:
    """`Class(...)`."""
    if "torch.autograd.Function" in cls.externals():
        return Unknown(thing("a custom autograd function"))
    instance = Instance(cls, is_module(cls))
    instance.lean = leaning_on_shape(cls)
    init = cls.lookup("__init__")
    if isinstance(init, Function):
        before = past(vm.budget, init, [instance, *args], kwargs)
        if before is not None and before.enough(vm.budget.share):
            return Unknown(
                Why(What.BUDGET, "an object like many before", vm.here.at(node)), (*args, *kwargs.values())
            )
        vm.call(Bound(instance, init), args, kwargs, node)
        if instance.module:
            vm.tell(Built(instance))
    elif layer_base(cls):
        base_init(vm.notes, instance, args, kwargs, node)
    else:
        _fields(vm.trail, instance, args, kwargs)
        if isinstance(after := cls.lookup("__post_init__"), Function):
            vm.call(Bound(instance, after), [], {}, node)
        if cls.opaque_base():
            for value in (*args, *kwargs.values()):
                escape(vm.strangers, value)
    return instance


def _fields(trail: Trail, instance: Instance, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
    """Dataclass and namedtuple fields; what a star may give isn't known."""
    names = _field_names(instance.cls)
    star = next((i for i, arg in enumerate(args) if isinstance(arg, Seq) and arg.kind == "star"), len(args))
    given = dict(zip(names, args[:star], strict=False)) | dict(kwargs)
    rest = names if given.pop("**", None) is not None else names[star:] if star < len(args) else []
    for name in rest:
        given.setdefault(name, Unknown(Why(What.ATTRIBUTE, f"field `{name}`")))
    for name, value in given.items():
        trail.put(instance, instance.attrs, name, value)


def _field_names(cls: Class) -> list[str]:
    """The fields of a class, those of its bases first."""
    names = [name for base in cls.bases if isinstance(base, Class) for name in _field_names(base)]
    for statement in cls.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names += [statement.target.id] if statement.target.id not in names else []
    return names


def base_init(
    notes: Notes, instance: Instance, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.AST
) -> None:
    """`super().__init__(...)` of a class that extends a layer or container of torch.nn."""

    kind = layer_base(instance.cls)
    if kind:
        notes.machine.trail.put(
            instance, instance.attrs, "<layer>", make_layer(notes, kind, args, kwargs, node)
        )


def class_statement(vm: Interpreter, node: ast.ClassDef) -> str | None:
    made: Value = make_class(vm, node)
    for expression in reversed(node.decorator_list):
        decorator = vm.eval(expression)
        if isinstance(decorator, Function):
            result = vm.call(decorator, [made], {}, expression)
            made = result if isinstance(result, Class) else made
    vm.names.store(node.name, made)
    return None
