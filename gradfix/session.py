"""One invocation: from paths and a plan to a Run."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gradfix import files, finder, gate, pool
from gradfix.engine import Known
from gradfix.outcome import Mode, Outcome, Run
from gradfix.plan import Plan
from gradfix.since import Revision, RevisionError, since
from gradfix.source import NOTEBOOK, Failure, is_notebook
from gradfix.task import Executor, Step, Task, mend, noted, silence

if TYPE_CHECKING:
    from gradfix.cache.kept import Cache

KEPT = 64
"""Outcomes of a request that are kept for later runs at a time, so that many requests may be open at once."""
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
    executor: Executor | None = None
    """Who works on the files, if not processes here."""

    @property
    def work(self) -> Executor:
        """Who works on the files."""
        return self.executor or pool.local(self.jobs)

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

    def delivered(self, outcome: Outcome) -> Outcome:
        """Put a new text where it belongs: on disk, or into what is made of standard input."""
        if self.reads_stdin:
            return replace(outcome, written=outcome.after is not None)
        return files.written(outcome)

    def concerns(self, content: bytes) -> bool:
        """Say whether a file can concern autograd at all."""
        return gate.passes(content, self.plan.config.frameworks)


@dataclass(slots=True)
class Part:
    """The files of one request, with what has come of them so far."""

    request: Request
    found: Sequence[finder.Found]
    count: Count
    revision: Revision | None = None
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    """By the place of their file."""
    fresh: list[tuple[Task, Outcome]] = field(default_factory=list)
    """What is to be kept."""

    @property
    def done(self) -> bool:
        return len(self.outcomes) == len(self.found)

    def delivered(self) -> Run:
        """What came of all, once new texts are where they belong."""
        outcomes = [self.outcomes[place] for place in range(len(self.found))]
        if self.request.mode in ("apply", "add-ignore"):
            outcomes = [self.request.delivered(outcome) for outcome in outcomes]
        return Run(tuple(outcomes), self.request.mode, self.request.plan.cards)

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """A task for each file that has to be parsed; the other files are done with at once."""
        request = self.request
        for place, each in enumerate(self.found):
            content = each.failure or files.read(each.path)
            if not (isinstance(content, bytes) and request.concerns(content)):
                failure = content if isinstance(content, Failure) else None
                self.outcomes[place] = Outcome(each.path, failure=failure, gated=failure is None)
                self.count(None)
                continue
            task = _dated(Task(each.path, content, request.plan), self.revision)
            kept = request.kept(task)
            if kept is None:
                yield place, task
            else:
                self.outcomes[place] = kept
                self.count(kept)
        self.flush()

    def take(self, place: int, task: Task, outcome: Outcome) -> None:
        """What was done for a task; what was read for it is of no more use once it is kept."""
        self.outcomes[place] = replace(outcome, reading=None)
        if self.request.cache is not None:
            self.fresh.append((task, outcome))
            if len(self.fresh) >= KEPT or self.done:
                self.flush()
        self.count(self.outcomes[place])

    def flush(self) -> None:
        """Keep what is new for later runs, and let go of the file that it is kept in."""
        if self.request.cache is not None:
            for each in self.fresh:
                self.request.cache.keep(*each)
            self.fresh.clear()
            self.request.cache.close()


def run(
    request: Request, advance: Callable[[int], Advance], heard: Callable[[Outcome], None] = lambda _: None
) -> Run:
    """Do all that is asked for; `advance` is told how many files there are and returns what counts them.

    `heard` is told of each file that was looked into, as soon as that is done.
    """
    if request.reads_stdin:
        outcome = _from_stdin(request)
        heard(outcome)
        written = request.delivered(outcome) if request.mode == "apply" else outcome
        return Run((written,), request.mode, request.plan.cards)
    revision = since(request.since, ".") if request.since else None
    config = request.plan.config
    found = [each for each in finder.find(request.paths, config) if _counts(each, revision)]
    advanced = advance(len(found))

    def count(outcome: Outcome | None) -> None:
        advanced(1)
        if outcome is not None:
            heard(outcome)

    (part,) = work([Part(request, found, count, revision)], request.work, request.step)
    return part.delivered()


def work(parts: Iterable[Part], executor: Executor, step: Step) -> Iterator[Part]:
    """Do a step for all files of all parts; each part comes as soon as it is done."""
    under_way: dict[str, tuple[Part, int, Task]] = {}
    open_parts: dict[int, Part] = {}
    done: deque[Part] = deque()

    def look_at(part: Part) -> None:
        if part.done and open_parts.pop(id(part), None) is not None:
            done.append(part)

    def tasks() -> Iterator[Task]:
        for part in parts:
            open_parts[id(part)] = part
            for place, task in part.tasks():
                under_way[task.path] = part, place, task
                yield task
            look_at(part)

    try:
        for outcome in executor(tasks(), step):
            part, place, task = under_way.pop(outcome.path)
            part.take(place, task, outcome)
            look_at(part)
            while done:
                yield done.popleft()
        yield from done
    finally:
        for part in open_parts.values():
            part.flush()


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


def _dated(task: Task, revision: Revision | None) -> Task:
    return replace(task, earlier=revision.earlier(task.path)) if revision else task
