"""What is taken for granted while something runs (convention F): defaults, flags, training mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gradfix.defects import Convention
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.torch_values import Layer
from gradfix.tape.domain.values import Const, Value

if TYPE_CHECKING:
    from gradfix.tape.interpreter.interpreter import Interpreter

TAKEN = frozenset({Convention.F})
V = TypeVar("V", bound=Value)


def granted(vm: Interpreter, value: V) -> V:
    """The same value, from now on one that is only taken for granted."""
    vm.taken[id(value)] = value
    return value


def is_granted(vm: Interpreter, value: Value | None) -> bool:
    return bool(vm.taken) and id(value) in vm.taken


def leaning_on_it(vm: Interpreter, run: Callable[[], Value]) -> Value:
    """Run what happens only if it holds; what it builds is then granted as well."""
    with vm.within(granted=vm.granted | TAKEN):
        result = run()
    return granted(vm, result) if isinstance(result, (Layer, Instance)) else result


def trains(vm: Interpreter, module: Layer | Instance) -> bool:
    """Whether a module is in training mode only as far as it is taken for granted."""
    return module.training is None and (vm.on_behalf or module.born < vm.began or id(module) in vm.unsure)


def training(vm: Interpreter, module: Layer | Instance) -> Const:
    """`module.training`."""
    mode = Const(module.training is not False)
    return granted(vm, mode) if trains(vm, module) else mode
