"""Calls that are followed into the source: functions made, entered and left."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from gradfix.defects.reasons import What
from gradfix.tape.domain.alternatives import alternatives
from gradfix.tape.domain.definitions import Code, Function, Instance, Scope, Suspended
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.moments import Site
from gradfix.tape.domain.torch_values import Layer, Mode, Opaque
from gradfix.tape.domain.values import (
    NONE,
    NOTHING,
    Alt,
    Const,
    External,
    Never,
    Seq,
    Unknown,
    unknown_of,
)
from gradfix.tape.domain.why import Why, thing
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.early_exits import enter, jumps, rejoin
from gradfix.tape.interpreter.frames import Frame
from gradfix.tape.interpreter.inside import all_in
from gradfix.tape.interpreter.limits import DEPTH, TooComplexError
from gradfix.tape.interpreter.modes import (
    LIBRARIES,
    doubt_mode,
    kept,
    lose_mode,
    may_have_set,
    may_set_mode,
    modes_of,
    restore,
    set_mode,
    unbound,
)
from gradfix.tape.interpreter.occasions import PutSomewhere
from gradfix.tape.interpreter.repeated_calls import Watch, past
from gradfix.tape.python.parameters import bind_parameters
from gradfix.tape.strangers.handed_out import escape
from gradfix.tape.torch.modules import leaves

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Args, Kwargs, Lean, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.state import Strangers
    from gradfix.tape.machine.machine import Machine

FEW = 200
"""The work that any call into another file may cost."""


def make_function(vm: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
    """A function value, with its defaults evaluated where it is defined."""
    code = vm.program.codes.get(id(node))
    if code is None:
        code = vm.program.codes[id(node)] = Code(node, vm.here.file)
    a = node.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    defaults = {
        name: vm.eval(d) for name, d in zip(names[len(names) - len(a.defaults) :], a.defaults, strict=True)
    }
    defaults.update(
        {arg.arg: vm.eval(d) for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    )
    function = Function(code, vm.names.scope, defaults)
    if vm.names.frame.code is None and not isinstance(node, ast.Lambda):
        vm.program.functions.append(function)
    return function


def call_function(
    vm: Interpreter,
    function: Function,
    args: Args,
    kwargs: Kwargs,
    node: ast.AST,
    receiver: Value | None = None,
) -> Value:
    """Call a function of the source; nothing runs yet of what is run in step with its caller."""
    if function.wrapper is not None:
        return vm.call(function.wrapper, args, kwargs, node)
    if node is vm.running.statement and generates(function.code) and function.suspends is False:
        return Seq("generator", [], open=True)  # and nobody has it to run it
    lazily = generates(function.code) and node not in vm.running.whole and not vm.names.frame.at_yield
    if function.suspends is not False or node is vm.running.looped or lazily:
        known = function.suspends is not None and (function.suspends or node is vm.running.looped)
        later = suspended(vm, function, args, kwargs, node, receiver) if known else None
        if later is not None:
            return later
        if (
            function.suspends is not False or lazily
        ):  # what it does before its yield isn't what it does behind
            _left_out(vm.machine, function, args, kwargs, node)
            for value in (function, *args, *kwargs.values()):
                escape(vm.strangers, value)
            may_have_set(vm)
            return unknown_of(thing("a context that isn't followed"), function, *args)
    result = follow(vm, function, args, kwargs, node, receiver)
    for decorator, expression in filter(_is_foreign, function.decorators):
        escape(vm.strangers, decorator)
        if type(result) in (Tensor, Seq, Alt):
            result = unknown_of(Why(What.CALLED, "a decorator", expression), result)
    return result


PLAIN_DECORATORS = frozenset({
    "beartype", "cachetools", "click", "diskcache", "einops", "fastapi", "fire", "flask", "gin", "gradio",
    "hydra", "jaxtyping", "joblib", "line_profiler", "memory_profiler", "numpy", "nvtx", "overrides",
    "pytest", "retry", "sacred", "streamlit", "tenacity", "torchtyping", "tqdm", "typeguard", "typer",
    "typing_extensions", "wandb",
})  # fmt: skip
"""Packages whose decorators hand on what a function returns as it is."""


def _is_of_others(one: tuple[Value, ast.AST]) -> bool:
    """Whether a decorator is of another package: it may call the function with what it likes."""
    return isinstance(one[0], (External, Unknown)) and path_of(one[0]).partition(".")[0] not in LIBRARIES


def _is_foreign(one: tuple[Value, ast.AST]) -> bool:
    """Whether a decorator of another package may make something else of what a function does and returns."""
    return _is_of_others(one) and path_of(one[0]).partition(".")[0] not in PLAIN_DECORATORS


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
    if code.file != vm.reports.findings.main or vm.budget.floor:
        return None  # the work that it may cost is not for what runs in step with it
    if isinstance(code.node, ast.Lambda) or not generates(code):
        return None
    if "return" in jumps(vm.switches, code.node, code.node.body):
        return None  # it may be left before its yield
    return Suspended(function, tuple(args), dict(kwargs), node, receiver)


def generates(code: Code) -> bool:
    """Whether a function's own statements yield."""
    if code.yields is None:
        yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in all_in(code.node))
        code.yields = yields and not isinstance(code.node, ast.Lambda) and _yield(code.node.body)
    return code.yields


def _yield(body: Sequence[ast.AST]) -> bool:
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
    return any(
        isinstance(one, (ast.Yield, ast.YieldFrom))
        or (not isinstance(one, nested) and _yield(list(ast.iter_child_nodes(one))))
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
    if len(vm.running.stack) >= DEPTH or vm.running.stack.count(code) >= 2:
        _left_out(vm.machine, function, args, kwargs, node)
        for value in (function, *args, *kwargs.values()):
            escape(vm.strangers, value)
            if isinstance(value, (Layer, Instance, Opaque)):
                put = Unknown(Why(What.BUDGET, "calls too deep to follow", vm.here.at(node)))
                vm.tell(PutSomewhere(value, put, node))
        may_have_set(vm)
        lost = unknown_of(
            Why(What.BUDGET, "calls too deep to follow", vm.here.at(node)), *args, *kwargs.values()
        )
        vm.strangers.results[id(lost)] = (lost, node, function)
        return lost
    if receiver is None and function.owner is not None and args:
        receiver = args[0]
    before = past(vm.budget, function, args, kwargs)
    if before is not None and code.name != "__init__" and before.enough(vm.budget.share):
        _left_out(vm.machine, function, args, kwargs, node)
        return Unknown(
            Why(What.BUDGET, "a call like many before", vm.here.at(node)), (*args, *kwargs.values())
        )
    filled = any(map(_is_of_others, function.decorators))
    names = bind_parameters(function, args, kwargs, filled=filled)
    watch = None if before is None else Watch(vm.budget, vm.trail, before, receiver)
    foreign = vm.budget.floor == 0 and code.file != vm.reports.findings.main
    run = _run_foreign if foreign else _run_function
    with Within(vm.timeline, vm.trail, {"site": Site(vm.here.at(node), vm.timeline.site)}):
        result = run(vm, function, names, receiver)
    if watch is not None:
        watch.end()
    return result


def _left_out(machine: Machine, function: Function, args: Args, kwargs: Kwargs, node: ast.AST) -> None:
    """A call that isn't followed may do to leaves what its code can get at."""
    given = (function, *args, *kwargs.values())
    machine.timeline.note("anything", given, machine.here.at(node), machine.here.path).skipped = True


def _run_foreign(
    vm: Interpreter, function: Function, names: dict[str, Value], receiver: Value | None
) -> Value:
    """Follow a call into another file, as long as that leaves most of the work to this one."""
    given = list(names.values())
    before = modes_of(vm.grad_mode)
    work = vm.budget.work
    try:
        if id(function.code) not in vm.budget.too_long:
            with vm.budget.within(floor=max(work - max(min(vm.budget.abroad, work) // 4, FEW), 1)):
                return _run_function(vm, function, names, receiver)
    except TooComplexError:
        vm.budget.too_long.add(id(function.code))
        restore(vm.machine, before)
    finally:
        vm.budget.abroad -= work - vm.budget.work
    vm.timeline.note("anything", (function, *given), None, vm.here.path).skipped = True
    for value in (function, *given):
        escape(vm.strangers, value)
    may_have_set(vm)
    return unknown_of(Why(What.BUDGET, "a call that takes too long to follow"), *given)


def _frozen(machine: Machine, receiver: Value | None) -> bool:
    """Whether a module has parameters and learns none of them, whatever else comes in that may learn."""
    held = leaves(machine, receiver)[0] if isinstance(receiver, Instance) and receiver.module else []
    return bool(held) and not any(machine.graph.requires(one) is not False for one in held)


def _taken_for_granted(receiver: Value | None) -> Lean:
    """What it takes that a method is one of a module."""
    return receiver.lean if isinstance(receiver, Instance) else NOTHING


def _run_function(
    vm: Interpreter, function: Function, names: dict[str, Value], receiver: Value | None
) -> Value:
    code = function.code
    code.entered = True
    if vm.grad_mode.grad is not False and vm.grad_mode.mode_in_doubt is False:
        code.recorded = True
        if not code.thawed and not _frozen(vm.machine, receiver):
            code.thawed = True
    frame = Frame(Scope(names, function.scope, function.scope.globals), code, vm.here.path)
    frame.at_yield = vm.running.at_yield
    frame.receiver, frame.owner, frame.caller = receiver, function.owner, vm.names.frame
    decorators = [mode for mode, _ in function.decorators]
    switching = any(isinstance(mode, (Mode, Unknown, Suspended)) or may_set_mode(mode) for mode in decorators)
    with (
        kept(vm) if switching else nullcontext(),
        vm.names.within(frame=frame),
        vm.here.within(file=code.file, path=vm.here.path),
        vm.running.within(stack=[*vm.running.stack, code], at_yield=None),
        vm.reports.within(granted=vm.reports.granted | _taken_for_granted(receiver)),
    ):
        for mode, expression in function.decorators:
            if isinstance(mode, Mode) and isinstance(mode.sets, Const):
                set_mode(vm.machine, mode.kind, bool(mode.sets.value), vm.here.at(expression))
            elif (isinstance(mode, Unknown) and unbound(vm.names, expression)) or isinstance(mode, Suspended):
                lose_mode(vm.machine, entered=True)
            elif may_set_mode(mode):
                doubt_mode(vm.machine)
        if isinstance(code.node, ast.Lambda):
            return vm.eval(code.node.body)
        if "return" in jumps(vm.switches, code.node, code.node.body):
            frame.exits = enter(vm)
        ended = vm.run(code.node.body)
        left = vm.here.path - frame.entry
        if frame.exits is not None:
            rejoin(vm.machine, frame.exits, ended in (None, "return"), frame.scope)
        if ended == "raise" and not frame.returns:  # callers go on only where another stands in
            if not _stands_for_another(code.node, function):
                return Never(thing("nothing: it raises"))
            return overridden(vm.strangers, list(names.values()))
        return _returned(frame, ended, left, vm.trail.limit)


def path_of(value: Value) -> str:
    """The dotted name of what isn't of the source, or of what was called to make it."""
    if isinstance(value, Unknown):
        return value.origin
    return value.path if isinstance(value, External) else ""


def _stands_for_another(node: ast.AST, function: Function) -> bool:
    """Whether a method that only raises is there to be overridden."""
    body = getattr(node, "body", [])
    return function.owner is not None and isinstance(body[-1], ast.Raise) and len(body) <= 2


def left_to_subclasses(function: Function, receiver: Value) -> bool:
    """Whether an object's own method is abstract, so that it is one of a subclass that has another."""
    own = isinstance(receiver, Instance) and receiver.cls.lookup(function.code.name) is function
    return own and any(path_of(value).startswith("abc.abstract") for value, _ in function.decorators)


def overridden(strangers: Strangers, given: list[Value]) -> Value:
    """What the function does and returns that is called in the place of one that nobody runs."""
    for value in given:
        escape(strangers, value)
    result = unknown_of(Why(What.SUBCLASS), *given)
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
