"""What a claim leans on, and how sure it is for that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from gradfix.defects.reasons import Reason

Certainty: TypeAlias = Literal["certain", "likely", "suspect"]
Enough: TypeAlias = Literal["certain", "likely"]
"""What is listed and rewritten: a suspect never is, unless somebody asks for suspects."""


class Convention(Enum):
    """What is taken for granted of code that keeps to the customs, by the letter that names it."""

    A = "batches from a loader carry no gradient"
    B = "what is made elsewhere is what it is used as: a module passes gradients on, an optimizer steps"
    C = "a loss function has no parameters and reduces to a scalar"
    D = "what comes out of `forward` is backpropagated"
    E = "loops run at least once"
    F = "the module is in training mode, flags are on, default callables hold"
    G = "grad mode is on when a function is entered"
    H = "the cells of a notebook are run once, from the first to the last"
    I = "a term of a loss is there to be learnt"  # noqa: E741


class Assumption(Enum):
    """What would have to hold in this one program, though nobody has seen it and no convention says so.

    A claim of absence takes one where its account has a gap: something that wasn't followed could have
    supplied what is said to be missing. The sentence is what a user has to make sure of.
    """

    NOBODY_ELSE_REGISTERS = "no optimizer that isn't seen whole gets what the container holds"
    NOBODY_ELSE_HOLDS = "no optimizer that isn't seen whole gets what was put in place of a layer"
    NOBODY_ELSE_USES = "no optimizer that isn't seen whole gets the tensor"
    NOBODY_ELSE_FILLS = "no call that wasn't followed brings these gradients"
    NOBODY_ELSE_CLEARS = "no call that wasn't followed clears these gradients"
    NOBODY_ELSE_WALKS = "nothing that wasn't followed walks back the graph that is kept"
    NOBODY_ELSE_KEEPS = "no call that wasn't followed has the tensor keep its gradient"
    NOBODY_ELSE_LETS = "no call that wasn't followed lets a leaf require grad"
    INPUT_LEARNS = "what the module is given requires grad, as something before it is trained"
    NO_OTHER_PART = "what is put into a module, it isn't known where, replaces no part that is used"
    NEEDS_WEIGHTS = "a module whose class isn't known does more than add its parameters to what it is given"
    NOTHING_CORRECTED = "what isn't known in the loss is nothing whose value the dead term corrects"
    CUT_BY_MISTAKE = "somebody who cuts off a term of the loss by hand doesn't want its value alone"
    NO_TARGET = "a difference that is taken element by element is none to a target that is held on purpose"
    NOTHING_IS_LEARNT = "somebody chooses a way on which nothing is there to be learnt, and runs backward"
    RECORDED_HERE = "what is entered around it leaves recording on"
    ALL_HAS_RUN = "what was too complex to be run doesn't make up for it"
    TRIED_FIRST = "what was tried had been done before it raised"
    NOT_HANDLED = "the handler around it isn't meant for what torch raises here"
    NOT_MOVED = "the module hasn't been moved, which gives what hangs on it memory of its own"
    LEFT_IN_TRAINING = "the method, whose name isn't known, has left the module in training mode"
    SET_OTHERWISE = "what is set, which isn't known, isn't so already"
    CHOSEN_ALIKE = "one test comes out alike for several values"
    CHOSEN_AT_ONCE = "the tests on the way to it, which are about the same, can come out so at once"
    CHOSEN_APART = "two tests that read alike come out differently"


@dataclass(frozen=True, slots=True)
class Gap:
    """What isn't known in an account, and what it takes that it supplies nothing of what is missing."""

    assumption: Assumption
    reason: Reason


Lean: TypeAlias = frozenset[Convention | Assumption | Gap]
"""What a claim takes for granted."""
NOTHING: Lean = frozenset()


def certainty_of(lean: Lean) -> Certainty:
    """How sure a claim is that leans on this: the one place that decides it."""
    if weight(lean)[0]:
        return "suspect"
    return "likely" if lean else "certain"


def weight(lean: Lean) -> tuple[bool, int]:
    """By what the lighter of two is found: conventions alone weigh less than any assumption."""
    return any(not isinstance(one, Convention) for one in lean), len(lean)


def letters_of(lean: Lean) -> tuple[str, ...]:
    """The conventions among it, by their letters, in order."""
    return tuple(sorted(one.name for one in lean if isinstance(one, Convention)))


def assumptions_of(lean: Lean) -> tuple[str, ...]:
    """What one would have to make sure of, in sentences."""
    assumed = {one.assumption if isinstance(one, Gap) else one for one in lean}
    return tuple(sorted(one.value for one in assumed if isinstance(one, Assumption)))


def unknowns_of(lean: Lean) -> tuple[Reason, ...]:
    """Why each of that isn't known which may supply what is said to be missing."""
    found = {one.reason for one in lean if isinstance(one, Gap)}
    return tuple(sorted(found, key=lambda reason: (reason.line, reason.told)))
