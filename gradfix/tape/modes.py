"""Grad modes: what turns recording on and off, and the way back."""

from __future__ import annotations

import ast
from typing import TypeAlias

from gradfix.tape.conditions import truthy
from gradfix.tape.interpreter import Interpreter
from gradfix.tape.torchvalues import Mode
from gradfix.tape.values import FALSE, TRUE, Args, Const, Kwargs, Value

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

Modes: TypeAlias = tuple[object, object, bool]
"""Whether operations are recorded, what turned that off, and whether it was inference mode."""


def unbound(vm: Interpreter, node: ast.expr) -> bool:
    """Whether an expression starts from a name that nothing binds here: it may be any mode of torch."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in vm.unbound


def set_mode(vm: Interpreter, kind: str, on: bool, place: object) -> None:
    """Turn recording on or off; inside inference mode there is no turning it on."""
    if vm.inference and kind != "inference_mode":
        return
    vm.trail.set(vm, "grad", on)
    vm.trail.set(vm, "inference", kind == "inference_mode" and not on)
    if not on:
        vm.trail.set(vm, "grad_off", (kind, place))


def restore(vm: Interpreter, before: Modes) -> None:
    """Back to an earlier grad mode."""
    vm.trail.set(vm, "grad", before[0])
    vm.trail.set(vm, "grad_off", before[1])
    vm.trail.set(vm, "inference", before[2])


def call_mode(vm: Interpreter, name: str, args: Args, kwargs: Kwargs, node: ast.Call) -> Value:
    """Call what sets a mode: at once where it is a statement, else where it is entered or decorates."""
    place = vm.at(node)
    if name == "set_grad_enabled":
        sets = args[0] if args else kwargs.get("mode", TRUE)
        mode = Mode("set_grad_enabled", sets, place)
        if vm.is_statement(node):
            known = truthy(sets)
            set_mode(vm, "set_grad_enabled", known is not False, place)
            if known is None:
                vm.trail.set(vm, "grad", None)
        return mode
    if args and not isinstance(args[0], Const):
        return args[0]
    on = name == "enable_grad" or (name == "inference_mode" and bool(args) and args[0] is FALSE)
    return Mode(name, Const(on), place)
