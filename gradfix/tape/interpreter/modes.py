"""Grad modes: what turns recording on and off, and the way back."""

from __future__ import annotations

import ast
import sys
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from gradfix.tape.domain.definitions import Bound, Function, Instance, Suspended
from gradfix.tape.domain.narrowing import possible
from gradfix.tape.domain.torch_values import Mode
from gradfix.tape.domain.values import FALSE, TRUE, Alt, Const, External, Seq, Truth, Unknown, Value
from gradfix.tape.domain.why import fact
from gradfix.tape.interpreter.conditions import truth

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.values import Args, Kwargs, Place
    from gradfix.tape.domain.within import Within
    from gradfix.tape.interpreter.grad_switches import EachMode
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.names import Names
    from gradfix.tape.machine.grad_mode import GradMode
    from gradfix.tape.machine.machine import Machine

SWITCHES = ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")

MODES_BY_PATH = {
    f"{prefix}.{name}": name
    for prefix in ("torch", "torch.autograd")
    for name in ("no_grad", "enable_grad", "inference_mode")
}

Modes: TypeAlias = tuple[Truth, Value, Truth, Truth]
"""Whether operations are recorded, what set that, whether it was inference mode, and whether something may
have set it otherwise."""


def unbound(names: Names, node: ast.expr) -> bool:
    """Whether an expression starts from a name that nothing binds here: it may be any mode of torch."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in names.unbound


def of_torch(value: Value) -> bool:
    """Whether a value is something of torch's own, it isn't known what: it may be any mode."""
    held = value.holds if isinstance(value, Unknown) else ()
    return any(isinstance(one, External) and one.path.partition(".")[0] == "torch" for one in held)


def set_mode(machine: Machine, kind: str, on: bool, place: Place) -> None:
    """Turn recording on or off; inside inference mode there is no turning it on."""
    if machine.grad_mode.inference and kind != "inference_mode":
        return
    if machine.grad_mode.inference is None and on:
        lose_mode(machine)
        return
    mode = Mode(kind, TRUE if on else FALSE, place)
    in_doubt = on and machine.grad_mode.mode_in_doubt  # what was entered may have been inference mode
    restore(machine, (on, mode, kind == "inference_mode" and not on, in_doubt))


def lose_mode(machine: Machine, *, entered: bool = False) -> None:
    """Recording may be on or off from here; in what was entered, inference mode may be on as well."""
    restore(
        machine,
        (
            None,
            Mode("", Unknown(fact("the grad mode")), None),
            machine.grad_mode.inference or (None if entered else machine.grad_mode.inference),
            True,
        ),
    )


def may_have_set(vm: Interpreter) -> None:
    """What was called isn't followed: in a program that sets the grad mode by a statement, that may have."""
    if vm.switches.sets_mode():
        lose_mode(vm.machine)


def doubt_mode(machine: Machine) -> None:
    """What was entered isn't known, and may have turned recording off: what it is used for tells as well.

    Training that stands in a progress bar is recorded as ever, or its own backward would fail. But what only
    works without recording is taken to stand there for that reason.
    """
    grad, mode, inference, _ = modes_of(machine.grad_mode)
    restore(machine, (grad or None, mode, inference, True))


LIBRARIES = frozenset({"torch", "torchvision", "numpy"}) | sys.stdlib_module_names
"""Packages that know of a program what it gives them; what of theirs sets a grad mode is known."""


def may_set_mode(value: Value) -> bool:
    """Whether code that isn't known runs where a value is entered, or around what it decorates."""
    if isinstance(value, Alt):
        return any(may_set_mode(option) for _, option in value.options)
    if isinstance(value, Suspended):
        return True
    if not isinstance(value, (Unknown, External, Instance, Seq)):
        return False
    path = value.path if isinstance(value, External) else getattr(value, "origin", "")
    return path.partition(".")[0] not in LIBRARIES


def modes_of(grad_mode: GradMode) -> Modes:
    """The present grad mode, to come back to."""
    return grad_mode.grad, grad_mode.mode, grad_mode.inference, grad_mode.mode_in_doubt


def kept(vm: Interpreter) -> Within:
    """A block after which the grad mode is what it was before."""
    grad, mode, inference, in_doubt = modes_of(vm.grad_mode)
    return vm.grad_mode.within(grad=grad, mode=mode, inference=inference, mode_in_doubt=in_doubt)


def restore(machine: Machine, before: Modes) -> None:
    """Back to an earlier grad mode."""
    machine.trail.set(machine.grad_mode, "grad", before[0])
    machine.trail.set(machine.grad_mode, "mode", before[1])
    machine.trail.set(machine.grad_mode, "inference", before[2])
    machine.trail.set(machine.grad_mode, "mode_in_doubt", before[3])


def call_mode(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Call what sets a mode: at once where it is a statement, else where it is entered or decorates."""
    place = vm.here.at(node)
    if name == "set_grad_enabled":
        sets = args[0] if args else kwargs.get("mode", TRUE)
        mode = Mode("set_grad_enabled", sets, place)
        if vm.running.is_statement(node):
            known, yes, no = truth(vm.notes, sets, node.args[0] if node.args else node)
            if known is None:
                switch = partial(set_mode, vm.machine, "set_grad_enabled", place=place)
                vm.forks.fork([(yes, partial(switch, on=True)), (no, partial(switch, on=False))])
            else:
                set_mode(vm.machine, "set_grad_enabled", known, place)
        return mode
    given = args[0] if args else kwargs.get("mode")
    off = name == "inference_mode" and isinstance(given, Const) and not given.value
    on = name == "enable_grad" or off
    mode = Mode(name, Const(on), place)
    if args and isinstance(args[0], (Function, Bound)):
        return vm.call(mode, args, {}, node)
    return mode if given is None or isinstance(given, Const) else given


def each_mode(vm: Interpreter, node: EachMode) -> str | None:
    """What follows runs once in each grad mode, on the paths that led to it."""

    def arm(guard: Path, mode: Value) -> str | None:
        sets = mode.sets if isinstance(mode, Mode) else None
        on = bool(sets.value) if isinstance(sets, Const) else None
        inference = isinstance(mode, Mode) and mode.kind == "inference_mode" and on is False
        restore(vm.machine, (on, mode, inference, vm.grad_mode.mode_in_doubt))
        with (
            vm.here.within(assumed=vm.here.assumed | guard),
            vm.switches.within(each_modes=vm.switches.each_modes + 1),
        ):
            return vm.run(node.body)

    modes = possible(vm.grad_mode.mode, vm.here.path) if isinstance(vm.grad_mode.mode, Alt) else []
    guarded = [(both - vm.here.path, mode) for both, mode in modes]
    return vm.forks.fork([(guard, partial(arm, guard, mode)) for guard, mode in guarded])
