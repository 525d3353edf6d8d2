"""The work that an entry may still cost, and what its calls have cost so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.limits import TooComplexError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.trail import Trail


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    floor: int


class Budget:
    """Work is counted in expressions and statements, and in the alternatives that these are done for."""

    def __init__(self, work: int, trail: Trail) -> None:
        self.trail = trail
        self.work = work
        self.share = work
        """The work that it began with."""
        self.unfinished = False
        """Whether not all of it was run: what is missing may be in what wasn't."""
        self.floor = 0
        """How much work must be left over by what is being done."""
        self.abroad = work // 2
        """How much work calls into other files may still cost."""
        self.too_long: set[int] = set()
        """Functions of other files that cost more than they may."""
        self.times: dict[int, int] = {}
        """How often each function was called."""
        self.past: dict[Any, Any] = {}
        """What following calls of each kind has cost."""

    def spend(self, work: int) -> None:
        """Use some up, for what is done more than once in one expression."""
        self.work -= work
        if self.work < self.floor:
            raise TooComplexError

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)
