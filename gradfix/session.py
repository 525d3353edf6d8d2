"""One invocation: from paths and a plan to a Run."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gradfix import files, finder, gate, pool
from gradfix.engine import Known
from gradfix.outcome import Mode, Outcome, Run
from gradfix.plan import Plan
from gradfix.since import Revision, RevisionError, since
from gradfix.source import NOTEBOOK, Failure, is_notebook
from gradfix.task import Step, Task, mend, noted, silence

if TYPE_CHECKING:
    from gradfix.cache.kept import Cache

STDIN = "-"
UNNAMED = "<stdin>"
Advance = Callable[[int], None]
Count = Callable[["Outcome | None"], None]
"""Told of each file that is done with, and of what came of it if it was looked into."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for."""

    paths: tuple[str, ...]
    mode: Mode
    plan: Plan
    jobs: int = 1
    since: str | None = None
    stdin_filename: str = UNNAMED
    cache: Cache | None = None
    """What earlier runs have found, which needs no looking at again."""

    @property
    def reads_stdin(self) -> bool:
        return self.paths == (STDIN,)

    @property
    def step(self) -> Step:
        """What is done with each file."""
        if self.mode == "add-ignore":
            return silence
        return noted if self.cache is not None else mend

    def kept(self, task: Task) -> Outcome | None:
        """What an earlier run has found in a file; what is to be written is always made anew."""
        found = self.cache.find(task) if self.cache is not None else None
        shows = self.mode in ("list", "diff")
        return found if found is not None and (shows or not found.findings) else None

    def keep(self, task: Task, outcome: Outcome) -> Outcome:
        """Keep it for later runs; what was read for it is of no more use."""
        if self.cache is not None:
            self.cache.keep(task, outcome)
        return replace(outcome, reading=None)

    def delivered(self, outcome: Outcome) -> Outcome:
        """Put a new text where it belongs: on disk, or into what is made of standard input."""
        if self.reads_stdin:
            return replace(outcome, written=outcome.after is not None)
        return files.written(outcome)

    def concerns(self, content: bytes) -> bool:
        """Say whether a file can concern autograd at all."""
        return gate.passes(content, self.plan.config.frameworks)


@dataclass(slots=True)
class Book:
    """The outcomes by the place of their file, and the tasks that are under way with theirs."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    tasks: deque[tuple[int, Task]] = field(default_factory=deque)


def run(
    request: Request, advance: Callable[[int], Advance], heard: Callable[[Outcome], None] = lambda _: None
) -> Run:
    """Do all that is asked for; `advance` is told how many files there are and returns what counts them.

    `heard` is told of each file that was looked into, as soon as that is done.
    """
    if request.reads_stdin:
        outcomes = [_from_stdin(request)]
        heard(outcomes[0])
    else:
        revision = since(request.since, ".") if request.since else None
        config = request.plan.config
        found = [each for each in finder.find(request.paths, config) if _counts(each, revision)]
        advanced = advance(len(found))

        def count(outcome: Outcome | None) -> None:
            advanced(1)
            if outcome is not None:
                heard(outcome)

        outcomes = _outcomes(found, request, revision, count)
    if request.mode in ("apply", "add-ignore"):
        outcomes = [request.delivered(outcome) for outcome in outcomes]
    return Run(tuple(outcomes), request.mode, request.plan.cards)


def _from_stdin(request: Request) -> Outcome:
    path, content = request.stdin_filename, sys.stdin.buffer.read()
    if path == UNNAMED and is_notebook(content):
        path += NOTEBOOK
    if not request.concerns(content):
        return Outcome(path, gated=True, before=content)
    return replace(request.step(Task(path, content, request.plan)), before=content)


def known_in(request: Request, outcome: Outcome) -> Known | None:
    """What doesn't count in a file, as it was there at the revision since which findings do."""
    if not request.since:
        return None
    task = Task(outcome.path, outcome.before or b"", request.plan)
    return _dated(task, since(request.since, ".")).known()


def _counts(found: finder.Found, revision: Revision | None) -> bool:
    """Say whether a file is to be looked at; one that has no past at all is no answer to a question of it."""
    if revision is None or found.failure is not None:
        return True
    if not revision.holds(found.path):
        raise RevisionError(f"{found.path} lies outside the repository of the working directory")
    return revision.touches(found.path)


def _outcomes(
    found: Sequence[finder.Found], request: Request, revision: Revision | None, count: Count
) -> list[Outcome]:
    book = Book()
    try:
        tasks = _tasks(found, book, count, request, revision)
        for outcome in pool.run(tasks, request.jobs, request.step):
            place, task = book.tasks.popleft()
            book.outcomes[place] = request.keep(task, outcome)
            count(book.outcomes[place])
    finally:
        if request.cache is not None:
            request.cache.close()
    return [book.outcomes[place] for place in range(len(found))]


def _tasks(
    found: Sequence[finder.Found], book: Book, count: Count, request: Request, revision: Revision | None
) -> Iterator[Task]:
    """A task for each file that has to be parsed; the other files are done with at once."""
    for place, each in enumerate(found):
        content = each.failure or files.read(each.path)
        if not (isinstance(content, bytes) and request.concerns(content)):
            failure = content if isinstance(content, Failure) else None
            book.outcomes[place] = Outcome(each.path, failure=failure, gated=failure is None)
            count(None)
            continue
        task = _dated(Task(each.path, content, request.plan), revision)
        kept = request.kept(task)
        if kept is None:
            book.tasks.append((place, task))
            yield task
        else:
            book.outcomes[place] = kept
            count(kept)


def _dated(task: Task, revision: Revision | None) -> Task:
    return replace(task, earlier=revision.earlier(task.path)) if revision else task
