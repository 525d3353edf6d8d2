"""Calls that are followed into the source: functions made, entered and left."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import nullcontext

from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.definitions import Code, Function, Scope, Suspended
from gradfix.tape.domain.moments import Site
from gradfix.tape.domain.paths import Path
from gradfix.tape.domain.torch_values import Mode
from gradfix.tape.domain.values import NONE, Args, Const, External, Kwargs, Seq, Unknown, Value
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.early_exits import enter, jumps, rejoin
from gradfix.tape.interpreter.frames import Frame
from gradfix.tape.interpreter.interpreter import DEPTH, Interpreter
from gradfix.tape.interpreter.limits import TooComplexError
from gradfix.tape.interpreter.modes import (
    MODES_BY_PATH,
    doubt_mode,
    kept,
    lose_mode,
    may_set_mode,
    modes_of,
    restore,
    set_mode,
    unbound,
)
from gradfix.tape.interpreter.repeated_calls import Watch, past
from gradfix.tape.python.arguments import bind_parameters
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.other_packages import TRANSLATORS

FEW = 200
"""The work that any call into another file may cost."""


def make_function(vm: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
    """A function value, with its defaults evaluated where it is defined."""
    code = vm.program.codes.get(id(node))
    if code is None:
        code = vm.program.codes[id(node)] = Code(node, vm.file)
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
        vm.program.functions.append(function)
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
    function.suspends = any(_path(value) in MANAGERS for value, _ in kept)
    if any(_path(value).startswith(TRANSLATORS) for value, _ in kept):
        vm.program.functions[:] = [one for one in vm.program.functions if one is not function]
        return Unknown("a function that is translated")
    return function


def _path(value: Value) -> str:
    if isinstance(value, Unknown):
        return value.origin
    return value.path if isinstance(value, External) else ""


def call_function(
    vm: Interpreter,
    function: Function,
    args: Args,
    kwargs: Kwargs,
    node: ast.AST,
    receiver: Value | None = None,
) -> Value:
    """Call a function of the source; nothing runs yet of what is run in step with its caller."""
    if function.suspends or node is vm.looped:
        later = suspended(vm, function, args, kwargs, node, receiver)
        if later is not None:
            return later
        if function.suspends:  # what it does before its yield isn't what it does behind
            _left_out(vm, function, args, kwargs, node)
            for value in (*args, *kwargs.values()):
                escape(vm, value)
            return vm.unknown("a context that isn't followed", *args)
    return follow(vm, function, args, kwargs, node, receiver)


MANAGERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})


def suspended(
    vm: Interpreter,
    function: Function,
    args: Args,
    kwargs: Kwargs,
    node: ast.AST,
    receiver: Value | None,
) -> Suspended | None:
    """A call of a context manager, or of a generator that a loop goes through."""
    code = function.code
    if code.file != vm.findings.main or vm.floor:
        return None  # the work that it may cost is not for what runs in step with it
    if isinstance(code.node, ast.Lambda) or not _generates(code.node.body):
        return None
    if "return" in jumps(vm, code.node, code.node.body):
        return None  # it may be left before its yield
    return Suspended(function, tuple(args), dict(kwargs), node, receiver)


def _generates(body: Sequence[ast.AST]) -> bool:
    """Whether a function's own statements yield."""
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
    return any(
        isinstance(one, (ast.Yield, ast.YieldFrom))
        or (not isinstance(one, nested) and _generates(list(ast.iter_child_nodes(one))))
        for one in body
    )


def follow(
    vm: Interpreter,
    function: Function,
    args: Args,
    kwargs: Kwargs,
    node: ast.AST,
    receiver: Value | None = None,
) -> Value:
    """Follow a call into the source."""
    code = function.code
    if len(vm.stack) >= DEPTH or vm.stack.count(code) >= 2:
        _left_out(vm, function, args, kwargs, node)
        for value in (function, *args, *kwargs.values()):
            escape(vm, value)
        return vm.unknown("calls too deep to follow", *args, *kwargs.values())
    if receiver is None and function.owner is not None and args:
        receiver = args[0]
    before = past(vm, function, args, kwargs)
    if before is not None and code.name != "__init__" and before.enough(vm.share):
        _left_out(vm, function, args, kwargs, node)
        return Unknown("a call like many before", (*args, *kwargs.values()))
    names = bind_parameters(vm, function, args, kwargs)
    watch = None if before is None else Watch(vm, before, receiver)
    foreign = vm.floor == 0 and code.file != vm.findings.main
    run = _run_foreign if foreign else _run_function
    with Within(vm.timeline, vm.trail, {"site": Site(vm.at(node), vm.timeline.site)}):
        result = run(vm, function, names, receiver)
    if watch is not None:
        watch.end()
    return result


def _left_out(vm: Interpreter, function: Function, args: Args, kwargs: Kwargs, node: ast.AST) -> None:
    """A call that isn't followed may do to leaves what its code can get at."""
    given = (function, *args, *kwargs.values())
    vm.timeline.note("anything", given, vm.at(node), vm.path).skipped = True


def _run_foreign(
    vm: Interpreter, function: Function, names: dict[str, Value], receiver: Value | None
) -> Value:
    """Follow a call into another file, as long as that leaves most of the work to this one."""
    given = list(names.values())
    before = modes_of(vm)
    work = vm.work
    try:
        if id(function.code) not in vm.too_long:
            with vm.within(floor=max(work - max(min(vm.abroad, work) // 4, FEW), 1)):
                return _run_function(vm, function, names, receiver)
    except TooComplexError:
        vm.too_long.add(id(function.code))
        restore(vm, before)
    finally:
        vm.abroad -= work - vm.work
    vm.timeline.note("anything", (function, *given), None, vm.path).skipped = True
    for value in (function, *given):
        escape(vm, value)
    return vm.unknown("a call that takes too long to follow", *given)


def _run_function(
    vm: Interpreter, function: Function, names: dict[str, Value], receiver: Value | None
) -> Value:
    code = function.code
    code.entered = True
    if vm.grad is not False and vm.mode_in_doubt is False:
        code.recorded = True
    frame = Frame(Scope(names, function.scope, function.scope.globals), code, vm.path)
    frame.at_yield = vm.at_yield
    frame.receiver, frame.owner, frame.caller = receiver, function.owner, vm.frame
    decorators = [mode for mode, _ in function.decorators]
    switching = any(isinstance(mode, (Mode, Unknown)) or may_set_mode(mode) for mode in decorators)
    with (
        kept(vm) if switching else nullcontext(),
        vm.within(frame=frame, file=code.file, path=vm.path, stack=[*vm.stack, code]),
        vm.within(at_yield=None, granted=vm.granted),
    ):
        for mode, expression in function.decorators:
            if isinstance(mode, Mode) and isinstance(mode.sets, Const):
                set_mode(vm, mode.kind, bool(mode.sets.value), vm.at(expression))
            elif isinstance(mode, Unknown) and unbound(vm, expression):
                lose_mode(vm)
            elif may_set_mode(mode):
                doubt_mode(vm)
        if isinstance(code.node, ast.Lambda):
            return vm.eval(code.node.body)
        if "return" in jumps(vm, code.node, code.node.body):
            frame.exits = enter(vm)
        ended = vm.run(code.node.body)
        left = vm.path - frame.entry
        if frame.exits is not None:
            rejoin(vm, frame.exits, ended in (None, "return"), frame.scope)
        if ended == "raise" and _abstract(code):
            return _overridden(vm, names)
        return _returned(frame, ended, left, vm.trail.limit)


def _abstract(code: Code) -> bool:
    """Whether a function does nothing but raise, so that another one must stand in for it."""
    body = code.node.body
    stated = [one for one in body if not isinstance(one, ast.Expr)] if isinstance(body, list) else []
    return len(stated) == 1 and isinstance(stated[0], ast.Raise)


def _overridden(vm: Interpreter, names: dict[str, Value]) -> Value:
    """What the function returns that is called in the place of one that only raises."""
    for value in names.values():
        escape(vm, value)
    result = vm.unknown("what is left to subclasses", *names.values())
    result.part = True
    return result


def _returned(frame: Frame, ended: str | None, left: Path, limit: int) -> Value:
    if frame.yields is not None:
        return Seq("generator", frame.yields, open=True)
    options = list(frame.returns)
    if ended is None and (not options or any(value is not NONE for _, value in options)):
        options.append((left, NONE))
    if not options:
        return NONE
    return alternatives(options, limit)
