"""One invocation: from paths and a plan to a Run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gradfix import files, finder, gate, pool
from gradfix.engine import Known
from gradfix.outcome import Mode, Outcome, Run
from gradfix.plan import Plan
from gradfix.since import Revision, RevisionError, since
from gradfix.source import NOTEBOOK, Failure, is_notebook
from gradfix.task import Step, Task, mend, silence

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

    @property
    def reads_stdin(self) -> bool:
        return self.paths == (STDIN,)

    @property
    def step(self) -> Step:
        """What is done with each file."""
        return silence if self.mode == "add-ignore" else mend

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
    """The outcomes by the place of their file, and which places the tasks stand for."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    tasks: list[int] = field(default_factory=list)


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
    dated = (_dated(task, revision) for task in _tasks(found, book, count, request))
    for number, outcome in enumerate(pool.run(dated, request.jobs, request.step)):
        book.outcomes[book.tasks[number]] = outcome
        count(outcome)
    return [book.outcomes[place] for place in range(len(found))]


def _tasks(found: Sequence[finder.Found], book: Book, count: Count, request: Request) -> Iterator[Task]:
    """A task for each file that has to be parsed; the other files are done with at once."""
    for place, each in enumerate(found):
        content = each.failure or files.read(each.path)
        if isinstance(content, bytes) and request.concerns(content):
            book.tasks.append(place)
            yield Task(each.path, content, request.plan)
        else:
            failure = content if isinstance(content, Failure) else None
            book.outcomes[place] = Outcome(each.path, failure=failure, gated=failure is None)
            count(None)


def _dated(task: Task, revision: Revision | None) -> Task:
    return replace(task, earlier=revision.earlier(task.path)) if revision else task
