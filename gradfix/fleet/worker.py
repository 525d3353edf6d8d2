"""What a worker does with a batch: it looks who has sent it, and does it without a look at its own disk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib import metadata
from typing import cast

from gradfix.cache.key import own
from gradfix.fleet.batches import Batch, Packed, packed, unpacked
from gradfix.fleet.carried import Carried
from gradfix.neighbours import Neighbours
from gradfix.outcome import Outcome
from gradfix.plan import played
from gradfix.task import Step, Task

PROJECTS = 4
"""Of so many projects a worker keeps what was carried to it, with what it has parsed of that."""
UNKNOWN = "unknown"
ONE_BY_ONE = threading.Lock()
"""The tape is made for one thread, however many a worker has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes back of a batch."""

    maker: str
    """Who has done it, or would have: with another maker than the one asked for, nothing was done."""
    worker: str
    outcomes: Packed = b""
    """For each task, in order; None where it asks for what wasn't carried."""


@cache
def maker() -> str:
    """Who makes an outcome here, in words: all that it hangs on besides what travels."""
    import platform

    python = ".".join(platform.python_version_tuple()[:2])
    code = own()
    checkout = "" if code.startswith("gradfix-") else f" (a checkout, {code[:8]})"
    return f"gradfix {version('gradfix')}{checkout}, Python {python}, libcst {version('libcst')}"


def version(name: str) -> str:
    """The version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return UNKNOWN


def work(wanted: str, sent: Packed, carried: Packed) -> Answer:
    """Do a batch, if this is the gradfix that it was sent by."""
    from distributed import get_worker

    here: str = get_worker().address
    if wanted != maker():
        return Answer(maker(), here)
    step, tasks = cast("tuple[Step, Batch]", unpacked(sent))
    with ONE_BY_ONE:
        return Answer(wanted, here, packed(done(step, tasks, carried)))


def done(step: Step, tasks: Sequence[Task], carried: Packed) -> list[Outcome | None]:
    """The outcomes of tasks with what was carried; None for what needs more."""
    return [_done(step, task, *_unpacked(carried)) for task in tasks]


@lru_cache(PROJECTS)
def _unpacked(carried: Packed) -> tuple[Carried, Neighbours]:
    found = cast("Carried", unpacked(carried))
    return found, found.neighbours()


def _done(step: Step, task: Task, carried: Carried, others: Neighbours) -> Outcome | None:
    others.begin()
    plan = replace(task.plan, analyse=partial(played, others=others), here=carried.here)
    outcome = step(replace(task, plan=plan))
    reading = others.reading
    if not carried.covers(reading):
        return None
    return replace(
        outcome,
        before=None if outcome.before is None else b"",  # who has sent it has it
        reading=None if outcome.reading is None else reading,
    )
