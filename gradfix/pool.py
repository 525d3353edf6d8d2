"""Many files: a pure, picklable step for each, through any `concurrent.futures.Executor`."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar

from gradfix import engine, registry
from gradfix.defects import Certainty
from gradfix.findings import Plan, Rows, tape
from gradfix.neighbours import Neighbours
from gradfix.outcome import Outcome
from gradfix.patch import LineMap
from gradfix.rule import Options
from gradfix.since import Earlier
from gradfix.source import Failure

WINDOW = 8
"""Tasks under way for each process: enough to keep it busy, few enough to hold in memory."""
SMALL = 300_000
"""Bytes of source that are sooner worked on here than handed to new processes."""

T = TypeVar("T")
Make: TypeAlias = Callable[[], Executor]
Step: TypeAlias = "Callable[[Task], Outcome]"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the step does, in a form that crosses to another process: rules by their names."""

    rules: frozenset[str]
    options: Options = field(default_factory=Options)
    unsafe_fixes: bool = False
    min_certainty: Certainty = "likely"
    fix_certainty: Certainty = "likely"
    deed: Literal["fix", "ignore"] = "fix"
    follow_imports: bool = True
    rows: Rows = ()
    """The user's own frameworks."""

    def plan(self) -> Plan:
        """The plan of the engine."""
        return Plan(
            {name: codemod for name, codemod in registry.codemods().items() if name in self.rules},
            self.options,
            self.unsafe_fixes,
            self.min_certainty,
            self.fix_certainty,
            resolve=_neighbours() if self.follow_imports else None,
            **({"analyse": partial(tape, rows=self.rows)} if self.rows else {}),
        )


@dataclass(frozen=True, slots=True)
class Task:
    """One file to work on."""

    path: str
    content: bytes
    settings: Settings
    earlier: Earlier | None = None
    """What the file was at the revision since which findings count."""


@cache
def _neighbours() -> Neighbours:
    """One for each process, so that a module that many files import is parsed once."""
    return Neighbours()


def work(task: Task) -> Outcome:
    """The step for one file."""
    plan = task.settings.plan()
    known = None
    if task.earlier is not None:
        before = engine.fix(task.path, task.earlier.content, plan).findings
        known = engine.known(before, LineMap(task.earlier.diff))
    deed = engine.ignore if task.settings.deed == "ignore" else engine.fix
    return deed(task.path, task.content, plan, known)


class Here(Executor):
    """An executor that works in this process, at once."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def processes(jobs: int) -> ProcessPoolExecutor:
    """A pool whose processes leave Ctrl-C to their parent."""
    return ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))


def usable_cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def stop() -> None:
    """End the processes of the pools at once."""
    for process in multiprocessing.active_children():
        process.terminate()


def run(tasks: Iterable[Task], jobs: int, step: Step = work) -> Iterator[Outcome]:
    """The outcomes of all tasks, in their order; few or small ones are not worth a pool."""
    tasks = iter(tasks)
    first: list[Task] = []
    size = 0
    for task in tasks if jobs > 1 else ():
        first.append(task)
        size += len(task.content)
        if size > SMALL:
            return through(partial(processes, jobs), chain(first, tasks), step, jobs * WINDOW)
    return through(Here, chain(first, tasks), step, 1)


def through(make: Make, tasks: Iterable[Task], step: Step, window: int) -> Iterator[Outcome]:
    """The outcomes through an executor, in the order of the tasks."""
    waiting: deque[tuple[Task, Future[Outcome]]] = deque()
    crew = Crew(make, step)
    try:
        for task in tasks:
            waiting.append((task, crew.submit(task)))
            if len(waiting) >= window:
                yield crew.result(*waiting.popleft())
        while waiting:
            yield crew.result(*waiting.popleft())
    finally:
        crew.executor.shutdown(wait=False, cancel_futures=True)


class Crew:
    """An executor that is replaced when one of its processes dies; the file at fault is named."""

    def __init__(self, make: Make, step: Step) -> None:
        self.make = make
        self.step = step
        self.executor = make()

    def submit(self, task: Task) -> Future[Outcome]:
        """Hand a task to the executor."""
        try:
            return self.executor.submit(self.step, task)
        except BrokenExecutor:
            self.executor = self.make()
            return self.executor.submit(self.step, task)

    def result(self, task: Task, future: Future[Outcome]) -> Outcome:
        """The outcome of a task; one that was under way when a process died is tried once more, alone."""
        try:
            return future.result()
        except BrokenExecutor:
            return self._alone(task)

    def _alone(self, task: Task) -> Outcome:
        executor = self.make()
        try:
            return executor.submit(self.step, task).result()
        except BrokenExecutor:
            return Outcome(task.path, failure=Failure("tape", "the Python interpreter died of it"))
        finally:
            executor.shutdown(wait=False)
