"""The grad mode: whether operations are recorded, and what has turned that on or off."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypedDict

from gradfix.tape.domain.narrowing import possible
from gradfix.tape.domain.torch_values import Mode
from gradfix.tape.domain.values import FALSE, TRUE, Alt, Join
from gradfix.tape.domain.within import Within

UNSET = Mode("", TRUE, None)
"""How a program begins: everything is recorded."""


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.values import Joins, Place, Truth, Value
    from gradfix.tape.machine.here import Here


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    grad: Truth
    mode: Value
    inference: Truth
    mode_in_doubt: Truth


class GradMode:
    """The present grad mode. Its cells are journalled, as it may differ by path."""

    JOINS: ClassVar[Joins] = {
        "grad": Join.TRUTH,
        "inference": Join.TRUTH,
        "mode": Join.VALUE,
        "mode_in_doubt": Join.TRUTH,
    }
    born = 0
    """To the trail it is older than any branch."""

    def __init__(self, here: Here) -> None:
        self.here = here
        self.trail = here.trail
        self.grad: Truth = True
        """Whether operations are recorded."""
        self.mode: Value = UNSET
        """What turned recording on or off; several where that differs by path."""
        self.mode_in_doubt: Truth = False
        """Whether something that isn't known was entered, which may have turned recording off."""
        self.inference: Truth = False
        """Whether what is made can't be kept for backward."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    @property
    def grad_off(self) -> tuple[str, Place]:
        """What turned recording off: the mode's name and the with statement, decorator or call."""
        path = self.here.path
        modes = possible(self.mode, path) if isinstance(self.mode, Alt) else [(path, self.mode)]
        off = (mode for _, mode in modes if isinstance(mode, Mode) and mode.sets is FALSE)
        mode = next(off, UNSET)
        return mode.kind, mode.place
