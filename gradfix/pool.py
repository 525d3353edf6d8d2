"""Many files: one after the other in this process, or through `gradfix.crew` in others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from gradfix.outcome import Outcome
from gradfix.task import Executor, Step, Task, mend

WINDOW = 8
"""Tasks under way for each process: enough to keep it busy, few enough to hold in memory."""
SMALL = 300_000
"""Bytes of source that are sooner worked on here than handed to new processes."""


def usable_cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(tasks: Iterable[Task], jobs: int, step: Step = mend) -> Iterator[Outcome]:
    """The outcomes of all tasks, in their order; few or small ones are not worth other processes."""
    tasks = iter(tasks)
    first: list[Task] = []
    size = 0
    for task in tasks if jobs > 1 else ():
        first.append(task)
        size += len(task.content)
        if size > SMALL:
            from gradfix.crew import processes, through

            return through(partial(processes, jobs), chain(first, tasks), step, jobs * WINDOW)
    return map(step, chain(first, tasks))


def local(jobs: int) -> Executor:
    """Processes here."""
    return lambda tasks, step: run(tasks, jobs, step)
