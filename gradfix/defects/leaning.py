"""What a claim leans on, and how sure it is for that."""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

Certainty: TypeAlias = Literal["certain", "likely"]


class Convention(Enum):
    """What is taken for granted of code that keeps to the customs, by the letter that names it."""

    A = "batches from a loader carry no gradient"
    B = "what is made elsewhere is what it is used as: a module passes gradients on, an optimizer steps"
    C = "a loss function has no parameters and reduces to a scalar"
    D = "what goes into `forward` requires grad, what comes out is backpropagated"
    E = "loops run at least once"
    F = "the module is in training mode, flags are on, default callables hold"
    G = "grad mode is on when a function is entered"


class Assumption(Enum):
    """What is taken for granted of this one program, though it isn't seen, and is no convention."""

    CUT_OFF_A_GRAPH = "what lies behind the cut is in a graph"
    NOBODY_ELSE_REGISTERS = "nobody who isn't seen registers or trains what the container holds"
    NOBODY_ELSE_HOLDS = "no optimizer that isn't seen holds what was put in place of a layer"
    NOBODY_ELSE_USES = "nobody who isn't seen uses the gradient of the tensor"


Lean: TypeAlias = frozenset[Convention | Assumption]
"""What a claim takes for granted."""
NOTHING: Lean = frozenset()


def certainty_of(lean: Lean) -> Certainty:
    """How sure a claim is that leans on this."""
    return "likely" if lean else "certain"


def letters_of(lean: Lean) -> tuple[str, ...]:
    """The conventions among it, by their letters, in order."""
    return tuple(sorted(one.name for one in lean if isinstance(one, Convention)))
