"""Sees what a program makes of a gradient and throws away: the step goes on with the gradient as it was."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType
from typing import Any

import torch

from gradfix.defects import Role
from gradfix.tape.effects.operations import where
from gradfix.trace.calls import storage
from gradfix.trace.places import Spot, resolve
from gradfix.trace.state import State

CALLER = 6
"""So many frames up is who has called torch."""
TRUTHS = where("gives", "truth")


class Dropped:
    """Asked of each value that was made of others of which something is known."""

    def __init__(self, state: State) -> None:
        self.state = state

    def made(self, name: str, found: list[Any], result: Any, spot: Spot | None) -> None:
        """Something was made, by a call at a place."""
        leaves = self._leaves(found[0]) if found and spot is not None else set()
        if spot is None or not leaves or not thrown_away(*spot) or not changes(name):
            return
        # What a library makes inside of the call is not what is thrown away there.
        if sys._getframe(CALLER).f_code is not spot[0] or any(result is value for value in found):
            return
        if self._gradient(found[0], leaves) and storage(found[0]) != storage(result):
            self.state.defect("gradient_edit_dropped", spot, [(Role.DROPPED, spot)], "", {"method": name})

    def _leaves(self, value: Any) -> set[int]:
        """The leaves of whose gradients a value is made."""
        return {leaf for one, _ in self.state.origins.get(value) if one.rebinds for leaf in one.leaves}

    def _gradient(self, value: Any, leaves: set[int]) -> bool:
        """Whether a value is what the next step will find in a leaf."""
        slots = [slot for slot in map(self.state.ledger.slots.get, leaves) if slot is not None]
        held = [leaf.grad for leaf in (slot.leaf() for slot in slots) if leaf is not None]
        return any(one is not None and storage(one) == storage(value) for one in held)


def changes(name: str) -> bool:
    """Whether there is one that does the same in place."""
    return hasattr(torch.Tensor, f"{name}_") and name not in TRUTHS


@functools.lru_cache(maxsize=4096)
def thrown_away(code: CodeType, at: int) -> bool:
    """Whether what a call gives is a statement of its own, and at no place where a notebook would show it."""
    found = iter(dis.get_instructions(code))
    call = next((one.opname for one in found if one.offset == at), "")
    if not call.startswith("CALL") or next(found).opname != "POP_TOP":
        return False
    column = resolve((code, at))["column"]
    return column != 0 if column is not None else code.co_name != "<module>"
