"""Ways to forget that leave the text alone: budgets, limits, depths and neighbours that are taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from random import Random
from unittest.mock import patch

from gradfix.source import Source
from gradfix.tape import entries
from gradfix.tape.domain import alternatives, trail
from gradfix.tape.interpreter import repeated_calls
from gradfix.tape.interpreter.limits import Resolver
from gradfix.tape.python import following


@dataclass(frozen=True, slots=True)
class Bound:
    """A setting that lets the tape know less, entered around an analysis."""

    name: str
    entered: Callable[[], AbstractContextManager[None]]
    resolve: Resolver | None = None
    """Who finds neighbours instead."""


Bounded = Callable[[Random, Resolver], Iterator[Bound]]


@contextmanager
def replaced(module: object, values: Mapping[str, object]) -> Iterator[None]:
    """Some constants of a module, for a while."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(patch.object(module, name, value))
        yield


def setting(name: str, module: object, **values: object) -> Bound:
    return Bound(name, partial(replaced, module, values))


def together(name: str, *bounds: Bound) -> Bound:
    """Several at once."""

    @contextmanager
    def entered() -> Iterator[None]:
        with ExitStack() as stack:
            for bound in bounds:
                stack.enter_context(bound.entered())
            yield

    return Bound(name, entered)


def budgets(random: Random, resolve: Resolver) -> Iterator[Bound]:
    """A part of the work; in short files only a small one is ever missed."""
    for by in (2, 4, 8, 64, 512):
        floor, each = entries.WORK_FLOOR // by, entries.WORK_PER_BYTE / by
        yield setting(f"/ {by}", entries, WORK_FLOOR=floor, WORK_PER_BYTE=each)


def shares(random: Random, resolve: Resolver) -> Iterator[Bound]:
    """All of the module's own work, and little for its entries together."""
    for by in (64, 512):
        yield setting(f"/ {by}", entries, MOST=entries.MOST / by)


def limits(random: Random, resolve: Resolver) -> Iterator[Bound]:
    """Fewer alternatives that are kept apart, and none looked at of what is one of more."""
    for most in (3, 2, 1):
        yield setting(f"{most}", trail, LIMIT=most)
        yield together(f"{most}, as one", setting("", trail, LIMIT=most), setting("", alternatives, WIDE=0))
    yield setting("no spread", entries, SPREAD_FLOOR=0, BYTES_PER_SPREAD=10**9)


def repeats(random: Random, resolve: Resolver) -> Iterator[Bound]:
    """Calls that look alike, and have changed nothing so far, aren't followed any more."""
    for times in (1, 2, 4):
        yield setting(f"after {times}", repeated_calls, SELDOM=0, TIMES=times, WATCHED=times, FOLD=0)


def depths(random: Random, resolve: Resolver) -> Iterator[Bound]:
    """Calls that lie deep aren't followed."""
    for depth in (0, 1, 2, 4):
        yield setting(f"{depth}", following, DEPTH=depth)


def nobody(importing: str, module: str, level: int) -> None:
    """No neighbouring file is found."""


def neighbours(random: Random, resolve: Resolver) -> Iterator[Bound]:
    """No neighbouring file, or not all of them."""
    kept = random.random()

    def some(importing: str, module: str, level: int) -> Source | None:
        """The same answer to the same question, which is what an import that can't be found gives."""
        lost = Random(f"{kept}{module}{level}").random() < 0.5
        return None if lost else resolve(importing, module, level)

    yield Bound("none", nullcontext, nobody)
    yield Bound("some", nullcontext, some)


BOUNDS: Mapping[str, Bounded] = {
    "budget": budgets,
    "share": shares,
    "alternatives": limits,
    "repeated calls": repeats,
    "depth": depths,
    "neighbour": neighbours,
}
"""Each way by its name."""
