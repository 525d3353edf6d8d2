"""The reason that an unknown value carries: filled where it is born, put into words where somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gradfix.defects.reasons import DERIVED, What

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Place, Unknown, Value

FAR = 64
"""How many values are looked through for what isn't known of its own."""


class Why(NamedTuple):
    """What isn't known, as the program names it, where it came from, and what it is a part of."""

    what: What
    name: str = ""
    place: Place = None
    of: Why | None = None

    def chain(self) -> Iterator[Why]:
        """It, and what it is a part of."""
        part: Why | None = self
        while part is not None:
            yield part
            part = part.of

    @property
    def derived(self) -> bool:
        """Whether it is unknown only as that is which it was taken from."""
        return self.what in DERIVED


def fact(name: str) -> Why:
    """A number, a text or a truth that a run decides."""
    return Why(What.RUN_TIME, name)


def thing(name: str) -> Why:
    """An object, which may be a tensor, that a run decides."""
    return Why(What.OBJECT, name)


INDEX = fact("an index")
RANGE = fact("a range")
BEGUN = fact("a range")
"""The same, where it is known where it begins, and that it goes upwards by one."""


def whys(value: Value) -> Iterator[Why]:
    """The reasons why a value isn't known, the nearest first: its own, then of all that it was made of.

    What joins several alternatives holds them, so the reasons of each are among them.
    """
    every = islice(_unknown_in(value), FAR)
    yield from dict.fromkeys(why for one in every for why in one.why.chain())


def why_of(value: Unknown) -> Why:
    """The nearest reason that stands by itself; its own where there is none."""
    return next((why for why in whys(value) if not why.derived or why.of is not None), value.why)


def _unknown_in(value: Value) -> Iterator[Unknown]:
    from gradfix.tape.domain.values import Alt, Seq, Unknown

    stack: list[Value] = [value]
    seen: set[int] = set()
    while stack:
        one = stack.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Unknown):
            yield one
            stack.extend(one.holds)
        elif isinstance(one, Seq):
            stack.extend(one.items)
        elif isinstance(one, Alt):
            stack.extend(option for _, option in one.options)
