"""What a module whose class isn't known keeps for backward: its weights, where what it is given has a graph.

A layer needs its weights for the gradient of its input: so does nearly every module. Of data, a single layer
keeps only that, and a module that only adds something keeps nothing: of these nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.tape.domain.values import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.torch_values import Opaque
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.machine import Machine

DEEP = 4
"""Through how many values what a module is given is followed to what it was taken out of."""


def keep_weights(machine: Machine, module: Opaque, made: Node, given: Iterable[Value]) -> None:
    """Let what a module has returned keep the module's weights (convention B), whether these learn or not."""
    if made.requires is not True or made.may:
        return
    if any(machine.graph.requires(value) is True or _is_part_of_result(value) for value in given):
        machine.operations.keeping.save(made, module.weights, made.lean)


def _is_part_of_result(value: Value) -> bool:
    """Whether a value was taken out of what another module has returned."""
    for _ in range(DEEP):
        if not isinstance(value, Unknown) or not value.part or len(value.holds) != 1:
            return False
        value = value.holds[0]
        if isinstance(value, Unknown) and value.requires is True and value.made is not None:
            return value.made.op == "module"
    return False
