"""One file to work on, and the pure, picklable steps that do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from gradfix import engine
from gradfix.outcome import Outcome
from gradfix.patch import LineMap
from gradfix.plan import Plan, neighbours
from gradfix.since import Earlier
from gradfix.source import NOTEBOOK, Failure, parse

Step: TypeAlias = "Callable[[Task], Outcome]"
Executor: TypeAlias = "Callable[[Iterable[Task], Step], Iterator[Outcome]]"
"""Who does a step for each task, somewhere: the outcomes come in any order, each with its task's path."""


class ExecutorError(Exception):
    """Nobody is there who could go on with the tasks."""


@dataclass(frozen=True, slots=True)
class Task:
    """One file to work on."""

    path: str
    content: bytes
    plan: Plan
    earlier: Earlier | None = None
    """What the file was at the revision since which findings count."""

    def known(self) -> engine.Known | None:
        """What was found in it at that revision already."""
        if self.earlier is None:
            return None
        before = engine.fix(self.path, self.earlier.content, self.plan).findings
        return engine.known(before, self._moves(self.earlier)) if before else None

    def _moves(self, earlier: Earlier) -> LineMap:
        """Where the old lines are: git tells, but not of those in the cells of a notebook."""
        if not self.path.endswith(NOTEBOOK):
            return LineMap(earlier.diff)
        old, new = parse(self.path, earlier.content), parse(self.path, self.content)
        if isinstance(old, Failure) or isinstance(new, Failure):
            return LineMap(b"")
        return engine.moves(old, new)


def mend(task: Task) -> Outcome:
    """The step that finds what breaks gradients, and the text with it mended."""
    return engine.fix(task.path, task.content, task.plan, task.known())


def noted(task: Task) -> Outcome:
    """The same step, with all that was read of other files for it."""
    others = neighbours()
    others.begin()
    outcome = mend(task)
    return replace(outcome, reading=others.reading)


def silence(task: Task) -> Outcome:
    """The step that finds it, and the text in which comments silence it."""
    return engine.ignore(task.path, task.content, task.plan, task.known())
