"""Hands one task after another to any `concurrent.futures.Executor`, and names the task that kills it."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import TypeAlias

from gradfix.outcome import Outcome
from gradfix.source import Failure
from gradfix.task import Step, Task

Make: TypeAlias = Callable[[], Executor]


def processes(jobs: int) -> ProcessPoolExecutor:
    """A pool whose processes leave Ctrl-C to their parent."""
    return ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))


def stop() -> None:
    """End the processes of the pools at once."""
    for process in multiprocessing.active_children():
        process.terminate()


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
