"""What decorators make of functions: grad modes, descriptors, and wrappers that are called in their place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Bound, Class, Function, Instance, Partial
from gradfix.tape.domain.torch_values import Mode
from gradfix.tape.domain.values import Const, External, Unknown, unknown_of
from gradfix.tape.domain.why import fact
from gradfix.tape.interpreter.modes import MODES_BY_PATH, may_set_mode
from gradfix.tape.python.following import generates, make_function, path_of
from gradfix.tape.strangers.kept import keep
from gradfix.tape.torch.other_packages import TRANSLATORS

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter

OTHER_CALLS = (*TRANSLATORS, "functools.singledispatch")
"""What calls something else, or runs a text as a program of its own, in the place of the function."""
MANAGERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})


def function_statement(vm: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    getter = _property(vm, node)
    function = (
        decorated(vm, make_function(vm, node), node) if getter is None else _set_through(vm, getter, node)
    )
    vm.names.store(node.name, function)
    return None


def _property(vm: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function | None:
    """The property of which this is the setter."""
    match node.decorator_list:
        case [ast.Attribute(ast.Name(name), "setter")]:
            held = vm.names.load(name)
            return held if isinstance(held, Function) else None
    return None


def _set_through(vm: Interpreter, getter: Function, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    both = getter.under(getter.decorators)
    both.setter = make_function(vm, node)
    return both


def decorated(vm: Interpreter, function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """A function with its decorators: grad modes and descriptors are kept, what the source says of its own is
    done, others call it as it is."""
    kept, own = [], []
    for expression in node.decorator_list:
        value = vm.eval(expression)
        if isinstance(value, External) and value.path in MODES_BY_PATH:
            value = Mode(
                MODES_BY_PATH[value.path], Const(value.path.endswith("enable_grad")), vm.here.at(expression)
            )
        if isinstance(value, (Function, Bound, Partial, Class)) or _is_called(value):
            own.append((value, expression))
        else:
            keep(vm.strangers, value, [function])
            kept.append((value, expression))
    function.decorators = tuple(kept)
    function.suspends = any(path_of(value) in MANAGERS for value, _ in kept)
    if not function.suspends and any(may_set_mode(value) for value, _ in kept) and generates(function.code):
        function.suspends = None
    if any(path_of(value).startswith(OTHER_CALLS) for value, _ in kept):
        vm.program.functions[:] = [one for one in vm.program.functions if one is not function]
        return Unknown(fact("a function that is translated"))
    _wrap(vm, function, own)
    return function


def _is_called(value: Value) -> bool:
    return isinstance(value, Instance) and isinstance(value.cls.lookup("__call__"), Function)


def _wrap(vm: Interpreter, function: Function, own: list[tuple[Value, ast.expr]]) -> None:
    """Let decorators of the source make of a function what they do, the last of them first."""
    given: Value
    given = bare = function.under(function.decorators)
    for value, expression in reversed(own):
        given = vm.call(value, [given], {}, expression)
    if given is not bare and type(given) is not Unknown:
        function.wrapper, function.wrapped = given, bare


def call_mode(vm: Interpreter, callee: Mode, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """`torch.enable_grad()(function)`: the function in that mode."""
    given = args[0] if args else None
    if given is None:
        return callee
    function = given.function if isinstance(given, Bound) else given
    if isinstance(function, Function) and function.wrapper is None:
        twin = function.under(((callee, node), *function.decorators))
        return Bound(given.receiver, twin) if isinstance(given, Bound) else twin
    return unknown_of(fact("a function in a grad mode"), given)
