"""What is taken for granted while something runs (convention F): defaults, flags, training mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gradfix.defects import Assumption, Convention
from gradfix.tape.domain.definitions import Instance
from gradfix.tape.domain.torch_values import Layer
from gradfix.tape.domain.values import Const, Value

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Lean
    from gradfix.tape.interpreter.state import Notes

TAKEN: Lean = frozenset({Convention.F})
UNKNOWN_METHOD: Lean = frozenset({Assumption.LEFT_IN_TRAINING})
V = TypeVar("V", bound=Value)


def granted(notes: Notes, value: V) -> V:
    """The same value, from now on one that is only taken for granted."""
    notes.taken[id(value)] = value
    return value


def is_granted(notes: Notes, value: Value | None) -> bool:
    return bool(notes.taken) and id(value) in notes.taken


def leaning_on_it(notes: Notes, run: Callable[[], Value], lean: Lean = TAKEN) -> Value:
    """Run what happens only if it holds; what it builds is then granted as well."""
    with notes.reports.within(granted=notes.reports.granted | lean):
        result = run()
    return granted(notes, result) if isinstance(result, (Layer, Instance)) else result


def trains(notes: Notes, module: Layer | Instance) -> bool:
    """Whether a module is in training mode only as far as it is taken for granted."""
    return module.training is None and (
        notes.on_behalf or module.born < notes.began or id(module) in notes.unsure
    )


def taken_for(notes: Notes, module: Layer | Instance) -> Lean:
    """What it takes that such a module is in training mode."""
    return notes.unsure[id(module)][1] if id(module) in notes.unsure else TAKEN


def training(notes: Notes, module: Layer | Instance) -> Const:
    """`module.training`."""
    mode = Const(module.training is not False)
    return granted(notes, mode) if trains(notes, module) else mode
