"""Calls: arguments, functions of the source, and who answers for what isn't."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from gradfix.tape.attributes import load_attribute
from gradfix.tape.classes import forward_only, instantiate
from gradfix.tape.definitions import Bound, Class, Code, Function, Instance, Method, Partial, Scope, Super
from gradfix.tape.elements import elements, part
from gradfix.tape.exits import enter, jumps, rejoin
from gradfix.tape.graph import Tensor
from gradfix.tape.hosts import instance_host, wrapped_host
from gradfix.tape.interpreter import DEPTH, Frame, Interpreter, TooComplexError
from gradfix.tape.layers import call_layer
from gradfix.tape.methods import call_own_method
from gradfix.tape.modes import MODES_BY_PATH, restore, set_mode, unbound
from gradfix.tape.paths import Path
from gradfix.tape.tensors import method_call
from gradfix.tape.torchvalues import Layer, Mode, Opaque
from gradfix.tape.trail import alternatives, one_of, varying
from gradfix.tape.unknowns import call_opaque, call_unknown, unknown_method
from gradfix.tape.values import NONE, Alt, Const, External, Map, Seq, Undefined, Unknown, Value

FEW = 200
"""The work that any call into another file may cost."""
SPLITS = 16
"""How many times a call is made for alternatives of its arguments that vary by themselves."""


def evaluate_call(vm: Interpreter, node: ast.Call) -> Value:
    """A call expression."""
    func = node.func
    if isinstance(func, ast.Attribute):
        receiver = vm.eval(func.value)
        args, kwargs = arguments(vm, node)
        if type(receiver) is not Alt:
            return call_method(vm, receiver, func.attr, args, kwargs, node)
        return vm.each(receiver, lambda one: call_method(vm, one, func.attr, args, kwargs, node))
    callee = vm.eval(func)
    if isinstance(callee, External) and callee.path == "builtins.super":
        return _super(vm, node)
    args, kwargs = arguments(vm, node)
    if type(callee) is not Alt:
        return call_value(vm, callee, args, kwargs, node)
    return vm.each(callee, lambda one: call_value(vm, one, args, kwargs, node))


def _super(vm: Interpreter, node: ast.Call) -> Value:
    receiver = vm.frame.receiver
    owner = vm.frame.owner
    if node.args:
        named = vm.eval(node.args[0])
        owner = named if isinstance(named, Class) else owner
    if receiver is None:
        return Unknown("super() outside a method")
    return Super(owner if isinstance(owner, Class) else None, receiver)


def arguments(vm: Interpreter, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
    """The evaluated arguments; what a star may add is unknown."""
    args: list[Value] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            value = vm.eval(arg.value)
            items, known = elements(vm, value, arg)
            args.extend(items if items is not None else [part(value)])
            if not known:
                args.append(Seq("star", [], open=True))
        else:
            args.append(vm.eval(arg))
    kwargs: dict[str, Value] = {}
    if not node.keywords:
        return args, kwargs
    for keyword in node.keywords:
        value = vm.eval(keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, Map):
            kwargs.update({key: item for key, item in value.items.items() if isinstance(key, str)})
            if value.open:
                kwargs["**"] = value
        else:
            kwargs["**"] = value
    return args, kwargs


def call_method(
    vm: Interpreter,
    receiver: Value,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.Call,
) -> Value:
    """`receiver.name(...)`."""
    if vm.wrapped and (done := wrapped_host(vm, receiver, name, args, kwargs, node)) is not None:
        return done
    if isinstance(receiver, Tensor):
        return _each_argument(
            vm, _unstarred(args), lambda given: method_call(vm, receiver, name, given, kwargs, node)
        )
    if isinstance(receiver, External):
        return call_value(vm, External(f"{receiver.path}.{name}"), args, kwargs, node)
    if isinstance(receiver, Unknown):
        return unknown_method(vm, receiver, name, args, kwargs, node)
    if isinstance(receiver, Class) and name == "apply" and forward_only(receiver):
        vm.exported = True
        return Unknown("what no backward comes back from", requires=False)
    if isinstance(receiver, Instance) and (
        (done := instance_host(vm, receiver, name, args, kwargs, node)) is not None
    ):
        return done
    return call_value(vm, load_attribute(vm, receiver, name, node), args, kwargs, node)


def _each_argument(vm: Interpreter, args: Sequence[Value], run: Callable[[Sequence[Value]], Value]) -> Value:
    """Split on the first argument that has alternatives."""
    first = 0
    for arg in args:
        if type(arg) is Alt:
            break
        first += 1
    else:
        return run(args)
    if len(args) > 1:
        args = _bounded(args)
    return vm.each(args[first], lambda one: _each_argument(vm, [*args[:first], one, *args[first + 1 :]], run))


def _unstarred(args: Sequence[Value]) -> Sequence[Value]:
    """Arguments without the mark of a star that may add more."""
    for arg in args:
        if type(arg) is Seq and arg.kind == "star":
            return [one for one in args if not (isinstance(one, Seq) and one.kind == "star")]
    return args


def _bounded(args: Sequence[Value]) -> list[Value]:
    """Arguments of which few vary by themselves: more would multiply."""
    bounded: list[Value] = []
    seen: set[Any] = set()
    times = 1
    for arg in args:
        if isinstance(arg, Alt):
            keys = varying(arg)
            if keys not in seen:
                if times * len(arg.options) > SPLITS:
                    arg = one_of(arg)
                else:
                    times *= len(arg.options)
                    seen.add(keys)
        bounded.append(arg)
    return bounded


def call_value(
    vm: Interpreter, callee: Value, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
) -> Value:
    """Call any value."""
    return CALLS.get(type(callee), call_unknown)(vm, callee, args, kwargs, node)


Call: TypeAlias = Callable[[Interpreter, Any, Sequence[Value], Mapping[str, Value], Any], Value]
CallByName: TypeAlias = Callable[[Interpreter, str, Sequence[Value], Mapping[str, Value], ast.Call], Value]


def _call_bound(
    vm: Interpreter, callee: Bound, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
) -> Value:
    return call_function(
        vm, callee.function, [callee.receiver, *args], kwargs, node, receiver=callee.receiver
    )


def _call_layer(
    vm: Interpreter, callee: Layer, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
) -> Value:
    return _each_argument(vm, args, lambda some: call_layer(vm, callee, some, kwargs, node))


def _call_partial(
    vm: Interpreter, callee: Partial, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
) -> Value:
    return call_value(vm, callee.function, [*callee.args, *args], {**callee.kwargs, **kwargs}, node)


def _call_mode(
    vm: Interpreter, callee: Mode, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
) -> Value:
    return args[0] if args and isinstance(args[0], Function) else callee


def calls_external(call: CallByName) -> CallByName:
    """Register how a name of another package is called."""

    def answer(
        vm: Interpreter, callee: External, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
    ) -> Value:
        return _each_argument(vm, _unstarred(args), lambda some: call(vm, callee.path, some, kwargs, node))

    CALLS[External] = answer
    return call


def _call_instance(
    vm: Interpreter, callee: Instance, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call
) -> Value:
    found = callee.cls.lookup("forward" if callee.module else "__call__")
    own = callee.attrs.get("forward")
    if own is not None and not isinstance(own, Undefined):
        return call_value(vm, own, args, kwargs, node)
    if isinstance(found, Function):
        return call_function(vm, found, [callee, *args], kwargs, node, receiver=callee)
    layer = callee.attrs.get("<layer>")
    if isinstance(layer, Layer):
        return call_value(vm, layer, args, kwargs, node)

    return call_unknown(vm, callee, args, kwargs, node)


def make_function(vm: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
    """A function value, with its defaults evaluated where it is defined."""
    code = vm.codes.get(id(node))
    if code is None:
        code = vm.codes[id(node)] = Code(node, vm.file)
    a = node.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    defaults = {
        name: vm.eval(d) for name, d in zip(names[len(names) - len(a.defaults) :], a.defaults, strict=True)
    }
    defaults.update(
        {arg.arg: vm.eval(d) for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    )
    function = Function(code, vm.scope, defaults)
    if vm.frame.code is None and not isinstance(node, ast.Lambda):
        vm.functions.append(function)
    return function


def decorated(vm: Interpreter, function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """A function with its decorators: grad modes and descriptors are kept, others call it as it is."""
    kept = []
    for expression in node.decorator_list:
        value = vm.eval(expression)
        if isinstance(value, External) and value.path in MODES_BY_PATH:
            value = Mode(
                MODES_BY_PATH[value.path], Const(value.path.endswith("enable_grad")), vm.at(expression)
            )
        kept.append((value, expression))
    function.decorators = tuple(kept)
    return function


def bind_parameters(
    vm: Interpreter, function: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> dict[str, Value]:
    """Arguments by parameter name; what isn't given has its default."""
    a = function.code.node.args
    names, every = function.code.names, function.code.every
    bound: dict[str, Value] = dict(function.defaults)
    star = next((i for i, arg in enumerate(args) if type(arg) is Seq and arg.kind == "star"), None)
    given = args
    if star is not None:
        given = args[:star]
        for name in names[len(given) :]:
            bound[name] = Unknown(f"argument `{name}`")
    bound.update(zip(names, given, strict=False))
    if a.vararg is not None:
        bound[a.vararg.arg] = Seq("tuple", list(given[len(names) :]), open=star is not None)
    extra: dict[Any, Value] = {}
    for name, value in kwargs.items():
        if name in every:
            bound[name] = value
        elif name != "**":
            extra[name] = value
    if a.kwarg is not None:
        bound[a.kwarg.arg] = Map(extra, open="**" in kwargs)
    for name in every:
        if name not in bound or ("**" in kwargs and name not in kwargs and name in function.defaults):
            bound[name] = Unknown(f"argument `{name}`")
    return bound


def call_function(
    vm: Interpreter,
    function: Function,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    receiver: Value | None = None,
) -> Value:
    """Follow a call into the source."""
    code = function.code
    if len(vm.stack) >= DEPTH or vm.stack.count(code) >= 2:
        for value in (*args, *kwargs.values()):
            vm.escape(value)
        return vm.unknown("calls too deep to follow", *args)
    if receiver is None and function.owner is not None and args:
        receiver = args[0]
    clock = vm.trail.clock
    if vm.memo and vm.memo_clock == clock:
        found = vm.memo.get(vm.memo_key(code, args, kwargs))
        if found is not None:
            return found[0] if isinstance(found[0], Const) else Unknown("a call", (*args, *kwargs.values()))
    names = bind_parameters(vm, function, args, kwargs)
    if vm.floor == 0 and code.file != vm.main:
        result = _run_foreign(vm, function, names, receiver)
    else:
        result = _run_function(vm, function, names, receiver)
    if vm.trail.clock == clock and (
        isinstance(result, Const) or (isinstance(result, Unknown) and not result.part)
    ):
        if vm.memo_clock != clock:
            vm.memo.clear()
            vm.memo_clock = clock
        vm.memo[vm.memo_key(code, args, kwargs)] = (result, args, kwargs)
    return result


def _run_foreign(
    vm: Interpreter, function: Function, names: dict[str, Value], receiver: Value | None
) -> Value:
    """Follow a call into another file, as long as that leaves most of the work to this one."""
    given = list(names.values())
    before = (vm.grad, vm.grad_off, vm.inference)
    repeat, statement = vm.repeat, vm.statement
    work = vm.work
    vm.floor = max(work - max(min(vm.abroad, work) // 4, FEW), 1)
    try:
        if id(function.code) not in vm.too_long:
            return _run_function(vm, function, names, receiver)
    except TooComplexError:
        vm.too_long.add(id(function.code))
        restore(vm, before)
        vm.repeat, vm.statement = repeat, statement
    finally:
        vm.floor = 0
        vm.abroad -= work - vm.work
    for value in given:
        vm.escape(value)
    return vm.unknown("a call that takes too long to follow", *given)


def _run_function(
    vm: Interpreter, function: Function, names: dict[str, Value], receiver: Value | None
) -> Value:
    code = function.code
    code.entered = True
    outer, file, path, later = vm.frame, vm.file, vm.path, vm.later_turn
    before = (vm.grad, vm.grad_off, vm.inference)
    depth, modes = len(vm.trail.frames), len(vm.modes)
    frame = Frame(Scope(names, function.scope, function.scope.globals), code, path)
    frame.receiver, frame.owner, frame.caller = receiver, function.owner, outer
    vm.frame, vm.file = frame, code.file
    vm.stack.append(code)
    try:
        for mode, expression in function.decorators:
            if isinstance(mode, Mode) and isinstance(mode.sets, Const):
                set_mode(vm, mode.kind, bool(mode.sets.value), vm.at(expression))
            elif isinstance(mode, Unknown) and unbound(vm, expression):
                vm.trail.set(vm, "grad", None)
        if isinstance(code.node, ast.Lambda):
            return vm.eval(code.node.body)
        if "return" in jumps(vm, code.node, code.node.body):
            frame.exits = enter(vm)
        ended = vm.run(code.node.body)
        left = vm.path - path
        if frame.exits is not None:
            rejoin(vm, frame.exits, ended in (None, "return"), frame.scope)
        return _returned(frame, ended, left, vm.trail.limit)
    finally:
        while len(vm.trail.frames) > depth:
            vm.trail.undo()
        del vm.modes[modes:]
        vm.stack.pop()
        vm.frame, vm.file, vm.path, vm.later_turn = outer, file, path, later
        if any(isinstance(mode, (Mode, Unknown)) for mode, _ in function.decorators):
            restore(vm, before)


def _returned(frame: Frame, ended: str | None, left: Path, limit: int) -> Value:
    if frame.yields is not None:
        return Seq("generator", frame.yields, open=True)
    options = list(frame.returns)
    if ended is None and (not options or any(value is not NONE for _, value in options)):
        options.append((left, NONE))
    if not options:
        return NONE
    return alternatives(options, limit)


CALLS: dict[type[Value], Call] = {
    Function: call_function,
    Bound: _call_bound,
    Layer: _call_layer,
    Class: instantiate,
    Instance: _call_instance,
    Method: call_own_method,
    Partial: _call_partial,
    Opaque: call_opaque,
    Mode: _call_mode,
}
"""Who answers a call, by what is called; what isn't here is unknown."""
