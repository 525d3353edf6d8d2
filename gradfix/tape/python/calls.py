"""Calls: who answers them, by what is called."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import alternatives, each_of, wide
from gradfix.tape.domain.definitions import Class, Function, Instance, Super
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import NONE, Alt, Const, External, Map, Seq, Undefined, Unknown
from gradfix.tape.domain.why import Why, fact
from gradfix.tape.interpreter.imports import canonical
from gradfix.tape.machine.deeds import BY_NAME, done
from gradfix.tape.machine.terms import TEXT_METHODS
from gradfix.tape.python.arguments import arguments, each_argument, unstarred
from gradfix.tape.python.classes import forward_only
from gradfix.tape.python.following import call_function, left_to_subclasses, overridden
from gradfix.tape.python.hooks import HOOKING, hook, unhook, with_hooks
from gradfix.tape.strangers.framework_objects import instance_host, wrapped_host
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.strangers.imported_modules import imported_module
from gradfix.tape.strangers.unknowns import unknown_method
from gradfix.tape.torch.layers import call_layer
from gradfix.tape.torch.module_methods import MODULE_METHODS
from gradfix.tape.torch.tensors import method_call

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Bound, Partial
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter


def _on_one_of(
    vm: Interpreter, receiver: Alt, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value:
    """What is put into one of several containers is in none of the others."""
    results: list[tuple[Path, Value]] = []

    def arm(guard: Path, one: Value) -> None:
        results.append((guard, call_method(vm, one, name, args, kwargs, node)))

    vm.forks.fork([(guard, partial(arm, guard, one)) for guard, one in receiver.options])
    return alternatives(results) if results else NONE


AT_ONCE = frozenset({
    "builtins.all", "builtins.any", "builtins.dict", "builtins.frozenset", "builtins.list", "builtins.max",
    "builtins.min", "builtins.set", "builtins.sorted", "builtins.sum", "builtins.tuple",
})  # fmt: skip
"""What asks for all items of what it is given."""


def evaluate_call(vm: Interpreter, node: ast.Call) -> Value:
    """A call expression."""
    func = node.func
    if isinstance(func, ast.Attribute):
        receiver = answering(vm.eval(func.value), func.attr)
        args, kwargs = arguments(vm, node)
        if func.attr == "update" and _written_through_dict(vm, func.value, args, kwargs):
            return NONE
        if func.attr in BY_NAME or func.attr.endswith("_"):
            done(
                vm.reports,
                node,
                receiver,
                *args[: func.attr == "step"],
                asked=not vm.running.is_statement(node),
            )
        if type(receiver) is not Alt:
            return call_method(vm, receiver, func.attr, args, kwargs, node)
        if any(isinstance(one, (Seq, Map)) for _, one in receiver.options):
            return _on_one_of(vm, receiver, func.attr, args, kwargs, node)
        return vm.forks.each(receiver, lambda one: call_method(vm, one, func.attr, args, kwargs, node))
    callee = vm.eval(func)
    if isinstance(callee, External) and callee.path == "builtins.super":
        return _super(vm, node)
    if isinstance(callee, External) and callee.path in AT_ONCE:
        with vm.running.within(whole=(*node.args,)):
            args, kwargs = arguments(vm, node)
    else:
        args, kwargs = arguments(vm, node)
    if type(callee) is not Alt:
        return vm.call(callee, args, kwargs, node)
    return vm.forks.each(callee, lambda one: vm.call(one, args, kwargs, node))


def _written_through_dict(vm: Interpreter, entries: ast.expr, args: Args, kwargs: Kwargs) -> bool:
    """`vars(self).update(...)`, or by its other name: each attribute may be another by now."""
    match entries:
        case ast.Attribute(ast.Name(name), "__dict__") | ast.Call(ast.Name("vars"), [ast.Name(name)], []):
            owner = vm.names.load(name)
        case _:
            return False
    if isinstance(owner, Instance):
        names = {*owner.attrs, *(name for cls in owner.cls.order for name in cls.attrs)}
        given = [arg.items.items() for arg in args if isinstance(arg, Map) and not arg.open]
        told = {str(name): value for pairs in given for name, value in pairs} | dict(kwargs)
        for name in names if len(given) < len(args) or "**" in kwargs else ():
            if not isinstance(owner.cls.lookup(name), Function):
                told[name] = Unknown(Why(What.ATTRIBUTE, f"`{name}` of an object"))
        for name, value in told.items():
            vm.trail.put(owner, owner.attrs, name, value)
    return isinstance(owner, Instance)


ASKING = frozenset(
    {"dim", "get", "is_complex", "is_floating_point", "ndimension", "nelement", "numel", "size"}
)
"""What has the same answer as long as it is asked of the same."""


def _told(vm: Interpreter, receiver: Value, name: str, args: Args, result: Value) -> Value:
    if name in ASKING:
        vm.reports.findings.terms.answered(result, name, receiver, *args[:1])
    return result


def answering(value: Value, name: str) -> Value:
    """A value without those of its alternatives that have no such attribute: Python stops there."""
    if type(value) is not Alt:
        return value
    left = [option for option in value.options if not _lacks(option[1], name)]
    if not left or len(left) == len(value.options):
        return value
    return left[0][1] if len(left) == 1 else Alt(tuple(left))


def _lacks(value: Value, name: str) -> bool:
    return isinstance(value, Const) and not hasattr(value.value, name)


def _super(vm: Interpreter, node: ast.Call) -> Value:
    receiver = vm.names.frame.receiver
    owner = vm.names.frame.owner
    if node.args:
        named = vm.eval(node.args[0])
        owner = named if isinstance(named, Class) else owner
    if receiver is None:
        return Unknown(fact("super() outside a method"))
    return Super(owner if isinstance(owner, Class) else None, receiver)


def call_method(
    vm: Interpreter, receiver: Value, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value:
    """`receiver.name(...)`."""
    if name in HOOKING and args and type(receiver) is not Unknown:
        return hook(vm, receiver, name, args, kwargs)
    if name == "remove" and not args:
        unhook(vm)
    if vm.strangers.wrapped and (done := wrapped_host(vm, receiver, name, args, kwargs, node)) is not None:
        return done
    if isinstance(receiver, Tensor):
        result = each_argument(
            vm.forks, unstarred(args), lambda given: method_call(vm, receiver, name, given, kwargs, node)
        )
        return _told(vm, receiver, name, args, result)
    if isinstance(receiver, External):
        if (module := imported_module(vm, receiver, name, node)) is not None:
            return unknown_method(vm, module, name, args, kwargs, node)
        return vm.call(External(canonical(f"{receiver.path}.{name}")), args, kwargs, node)
    if isinstance(receiver, Unknown):
        if name.endswith("_") and name[-2:] != "__" and receiver.options and receiver.tensor is None:
            return _in_place(vm, receiver, name, args, kwargs, node)
        result = unknown_method(vm, receiver, name, args, kwargs, node)
        if name in TEXT_METHODS and not kwargs:
            vm.reports.findings.terms.made(result, f".{name}", receiver, *args)
        return _told(vm, receiver, name, args, result)
    if isinstance(receiver, Opaque) and isinstance(receiver.of, Unknown) and name in MODULE_METHODS:
        return unknown_method(vm, receiver.of, name, args, kwargs, node)
    if isinstance(receiver, Class) and name == "apply" and forward_only(receiver):
        vm.running.exported = True
        return Unknown(fact("what no backward comes back from"), requires=False)
    if isinstance(receiver, Instance) and (
        (done := instance_host(vm, receiver, name, args, kwargs, node)) is not None
    ):
        return done
    found = vm.attribute(receiver, name, node)
    if isinstance(found, Alt) and all(_simple(option) for _, option in found.options):
        return vm.forks.each(found, lambda one: vm.call(one, args, kwargs, node))
    return vm.call(found, args, kwargs, node)


def _in_place(
    vm: Interpreter, receiver: Unknown, name: str, args: Args, kwargs: Kwargs, node: ast.Call
) -> Value:
    """What is done in place to one of several that were too many to be kept apart."""
    if not wide(receiver):
        ways = Alt(receiver.options)
        return vm.forks.each(ways, lambda one: call_method(vm, one, name, args, kwargs, node))
    for one in each_of(receiver):
        escape(vm.strangers, one)
    return unknown_method(vm, receiver, name, args, kwargs, node)


def _simple(option: Value) -> bool:
    """Whether a call of this is an operation or a few: whole networks would be followed too often."""
    if isinstance(option, Layer):
        return option.items is None or all(_simple(item) for item in option.items.values())
    return isinstance(option, (External, Undefined)) or option is NONE


def call_bound(vm: Interpreter, callee: Bound, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    given = [callee.receiver, *args]
    if left_to_subclasses(callee.function, callee.receiver):
        return overridden(vm.strangers, [*given, *kwargs.values()])
    return call_function(vm, callee.function, given, kwargs, node, receiver=callee.receiver)


def call_each_layer(vm: Interpreter, callee: Layer, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return with_hooks(
        vm,
        callee,
        args,
        node,
        lambda given: each_argument(vm.forks, given, lambda some: call_layer(vm, callee, some, kwargs, node)),
    )


def call_partial(vm: Interpreter, callee: Partial, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    return vm.call(callee.function, [*callee.args, *args], {**callee.kwargs, **kwargs}, node)


def _forward(
    vm: Interpreter, function: Function, callee: Instance, kwargs: Kwargs, node: ast.Call, args: Args
) -> Value:
    return call_function(vm, function, [callee, *args], kwargs, node, receiver=callee)


def call_instance(vm: Interpreter, callee: Instance, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    found = callee.cls.lookup("forward" if callee.module else "__call__")
    own = callee.attrs.get("forward")
    if own is not None and not isinstance(own, Undefined):
        return vm.call(own, args, kwargs, node)
    if isinstance(found, Function):
        called = partial(_forward, vm, found, callee, kwargs, node)
        return with_hooks(vm, callee, args, node, called) if callee.module else called(args)
    layer = callee.attrs.get("<layer>")
    if isinstance(layer, Layer):
        return vm.call(layer, args, kwargs, node)
    return vm.call_unknown(callee, args, kwargs, node)
