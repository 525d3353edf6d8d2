"""Grad modes: what turns recording on and off, and the way back."""

from __future__ import annotations

import ast
import sys
from functools import partial
from typing import TypeAlias

from gradfix.tape.domain.alternatives import possible
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.paths import Path
from gradfix.tape.domain.torch_values import Mode
from gradfix.tape.domain.values import (
    FALSE,
    TRUE,
    Alt,
    Args,
    Const,
    External,
    Kwargs,
    Place,
    Seq,
    Truth,
    Unknown,
    Value,
)
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.conditions import truth
from gradfix.tape.interpreter.grad_switches import EachMode
from gradfix.tape.interpreter.interpreter import Interpreter

SWITCHES = (
    "torch.set_grad_enabled",
    "torch.autograd.set_grad_enabled",
    "torch.autograd.grad_mode.set_grad_enabled",
)

MODES_BY_PATH = {
    f"{prefix}.{name}": name
    for prefix in ("torch", "torch.autograd", "torch.autograd.grad_mode")
    for name in ("no_grad", "enable_grad", "inference_mode")
}

Modes: TypeAlias = tuple[Truth, Value, Truth, Truth]
"""Whether operations are recorded, what set that, whether it was inference mode, and whether something may
have set it otherwise."""


def unbound(vm: Interpreter, node: ast.expr) -> bool:
    """Whether an expression starts from a name that nothing binds here: it may be any mode of torch."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in vm.unbound


def set_mode(vm: Interpreter, kind: str, on: bool, place: Place) -> None:
    """Turn recording on or off; inside inference mode there is no turning it on."""
    if vm.inference and kind != "inference_mode":
        return
    if vm.inference is None and on:
        lose_mode(vm)
        return
    mode = Mode(kind, TRUE if on else FALSE, place)
    restore(vm, (on, mode, kind == "inference_mode" and not on, False))


def lose_mode(vm: Interpreter) -> None:
    """Recording may be on or off from here."""
    restore(vm, (None, Mode("", Unknown("the grad mode"), None), vm.inference, True))


def doubt_mode(vm: Interpreter) -> None:
    """What was entered isn't known, and may have turned recording off: what it is used for tells as well.

    Training that stands in a progress bar is recorded as ever, or its own backward would fail. But what only
    works without recording is taken to stand there for that reason.
    """
    restore(vm, (vm.grad, vm.mode, vm.inference, True))


LIBRARIES = frozenset({"torch", "torchvision", "numpy"}) | sys.stdlib_module_names
"""Packages that know of a program what it gives them; what of theirs sets a grad mode is known."""


def may_set_mode(value: Value) -> bool:
    """Whether code that isn't known runs where a value is entered, or around what it decorates."""
    if isinstance(value, Alt):
        return any(may_set_mode(option) for _, option in value.options)
    if not isinstance(value, (Unknown, External, Instance, Seq)):
        return False
    path = value.path if isinstance(value, External) else getattr(value, "origin", "")
    return path.partition(".")[0] not in LIBRARIES


def modes_of(vm: Interpreter) -> Modes:
    """The present grad mode, to come back to."""
    return vm.grad, vm.mode, vm.inference, vm.mode_in_doubt


def kept(vm: Interpreter) -> Within:
    """A block after which the grad mode is what it was before."""
    return vm.within(grad=vm.grad, mode=vm.mode, inference=vm.inference, mode_in_doubt=vm.mode_in_doubt)


def restore(vm: Interpreter, before: Modes) -> None:
    """Back to an earlier grad mode."""
    vm.trail.set(vm, "grad", before[0])
    vm.trail.set(vm, "mode", before[1])
    vm.trail.set(vm, "inference", before[2])
    vm.trail.set(vm, "mode_in_doubt", before[3])


def call_mode(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Call what sets a mode: at once where it is a statement, else where it is entered or decorates."""
    place = vm.at(node)
    if name == "set_grad_enabled":
        sets = args[0] if args else kwargs.get("mode", TRUE)
        mode = Mode("set_grad_enabled", sets, place)
        if vm.is_statement(node):
            known, yes, no = truth(vm, sets, node.args[0] if node.args else node)
            if known is None:
                switch = partial(set_mode, vm, "set_grad_enabled", place=place)
                vm.fork([(yes, partial(switch, on=True)), (no, partial(switch, on=False))])
            else:
                set_mode(vm, "set_grad_enabled", known, place)
        return mode
    if args and not isinstance(args[0], Const):
        return args[0]
    on = name == "enable_grad" or (name == "inference_mode" and bool(args) and args[0] is FALSE)
    return Mode(name, Const(on), place)


def each_mode(vm: Interpreter, node: EachMode) -> str | None:
    """What follows runs once in each grad mode, on the paths that led to it."""

    def arm(guard: Path, mode: Value) -> str | None:
        sets = mode.sets if isinstance(mode, Mode) else None
        on = bool(sets.value) if isinstance(sets, Const) else None
        inference = isinstance(mode, Mode) and mode.kind == "inference_mode" and on is False
        restore(vm, (on, mode, inference, vm.mode_in_doubt))
        with vm.within(assumed=vm.assumed | guard, each_modes=vm.each_modes + 1):
            return vm.run(node.body)

    modes = possible(vm.mode, vm.path) if isinstance(vm.mode, Alt) else []
    guarded = [(both - vm.path, mode) for both, mode in modes]
    return vm.fork([(guard, partial(arm, guard, mode)) for guard, mode in guarded])
