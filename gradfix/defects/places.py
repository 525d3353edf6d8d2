"""Places in the text, and what happens to leaves at them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in a file as `ast` counts it: lines from 1, columns in UTF-8 bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int


TouchKind: TypeAlias = Literal[
    "reads", "writes", "steps", "schedules", "scales", "clears", "fills", "changes", "looks", "anything"
]


@dataclass(frozen=True, slots=True)
class Touch:
    """Something that happens to leaves or to their gradients between two events, and where.

    It reads or writes their values; steps them, or changes what their next step does (a scheduler, a
    scaler's update); clears, fills (a backward), changes or looks at their gradients. A call that isn't known
    and that could reach them may do anything.
    """

    span: Span | None
    """The expression or statement in the function that the events are in, under which it happens; None:
    outside of it."""
    kind: TouchKind
    whole: bool = True
    """Whether it happens to all of the leaves."""
    known: bool = True
    """Whether it surely happens to them."""


Touched: TypeAlias = tuple[Touch, ...] | None
"""All that touches leaves in a stretch; None where the order isn't known."""


def together(parts: Iterable[Touched]) -> Touched:
    """All touches of several stretches, each once; None where one of them isn't known."""
    found: dict[Touch, None] = {}
    for part in parts:
        if part is None:
            return None
        found.update(dict.fromkeys(part))
    return tuple(found)
