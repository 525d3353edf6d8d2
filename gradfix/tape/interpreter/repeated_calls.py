"""Calls that are made over and over: a function that has shown what it does isn't followed for ever.

Functions that call each other twice are run 2 ** depth times, and modules that hold two of a kind are built
as often. So the tape keeps what following a function has cost, by its text and by what its arguments look
like. Once that is out of proportion, and the last times have changed nothing that outlives the call (no cell
of anything older, no write, no backward, no step, no gradient cleared), the next call answers with what isn't
known, made of its arguments: its rules were broken in an earlier call or not at all, and whatever comes of
the result is silence.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.definitions import Bound, Class, Function, Instance
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Const, External, Seq, stamp

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Code
    from gradfix.tape.domain.trail import Changes, Trail
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.budget import Budget

SELDOM = 2
"""How many calls of a function nobody asks about."""
TIMES = 6
"""How many calls that look alike are followed in any case, from then on."""
WATCHED = 3
"""How many of them are watched: the last ones."""
FOLD = 4
"""What one call may cost, in sizes of its function, before it counts as more than it is worth."""
PART = 16
"""Which part of the work of an entry the calls of one kind may cost together."""


class Past:
    """What following calls of one kind has cost so far, and whether they changed anything."""

    __slots__ = ("changes", "code", "times", "work")

    def __init__(self, code: Code) -> None:
        self.code = code
        self.times = 0
        self.work = 0
        self.changes = False

    def enough(self, share: int) -> bool:
        """Whether another call would be more of the same, for more than it is worth."""
        if self.times < TIMES or self.changes:
            return False
        return self.work * PART > share or self.work > self.times * FOLD * _size(self.code)


class Watch:
    """One call that is followed: what it costs, and, where it may decide something, what it changes."""

    __slots__ = ("budget", "deeds", "depth", "past", "receiver", "trail", "work")

    def __init__(self, budget: Budget, trail: Trail, past: Past, receiver: Value | None) -> None:
        self.budget = budget
        self.trail = trail
        self.past = past
        self.receiver = receiver
        self.work = budget.work
        self.deeds = trail.deeds
        self.depth = len(trail.frames)
        if not past.changes and TIMES - WATCHED <= past.times < TIMES:
            trail.open(stamp())

    def end(self) -> None:
        """The call has returned."""
        past, trail = self.past, self.trail
        past.times += 1
        past.work += self.work - self.budget.work
        if len(trail.frames) > self.depth:
            past.changes = trail.deeds > self.deeds or self._outlives(trail.frames[-1][1])
            trail.close()

    def _outlives(self, changes: Changes) -> bool:
        """Whether anything older than the call was changed; a constructor fills what it is called for."""
        own = id(self.receiver) if self.past.code.name == "__init__" else None
        return any(id(change.owner) != own for change in changes.values())


def past(budget: Budget, function: Function, args: Args, kwargs: Kwargs) -> Past | None:
    """What is known of calls like this one; nothing as long as there are few."""
    times = budget.times[id(function.code)] = budget.times.get(id(function.code), 0) + 1
    if times <= SELDOM:
        return None
    key = (
        id(function.code),
        tuple([_look(value) for value in args]),
        tuple([(name, _look(value)) for name, value in kwargs.items()]) if kwargs else (),
    )
    found = budget.past.get(key)
    if found is None:
        found = budget.past[key] = Past(function.code)
    return found


def _look(value: Value) -> object:
    """What a function may see of an argument before it has done anything with it."""
    kind = type(value)
    if kind is Const:
        held = value.value  # type: ignore[attr-defined]
        return held if held is None or isinstance(held, (str, bool)) else type(held)
    if isinstance(value, Tensor):
        return kind, value.requires, value.leaf
    if isinstance(value, Instance):
        return kind, id(value.cls)
    if isinstance(value, (Function, Bound)):
        return kind, id((value.function if isinstance(value, Bound) else value).code)
    if isinstance(value, Class):
        return kind, id(value)
    if isinstance(value, External):
        return kind, value.path
    return (kind, value.kind) if isinstance(value, Seq) else kind


def _size(code: Code) -> int:
    """How many parts the text of a function has."""
    if code.size == 0:
        code.size = sum(1 for _ in ast.walk(code.node))
    return code.size
