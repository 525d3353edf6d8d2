"""One invocation: from paths and a configuration to a Run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gradfix import files, finder, gate, pool, registry
from gradfix.config import Config, ConfigError
from gradfix.outcome import Mode, Outcome, Run
from gradfix.pool import Settings, Task
from gradfix.rule import Options
from gradfix.since import Revision, RevisionError, since
from gradfix.source import Failure

STDIN = "-"
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for."""

    paths: tuple[str, ...]
    mode: Mode
    config: Config
    jobs: int = 1
    since: str | None = None
    stdin_filename: str = "<stdin>"

    @property
    def reads_stdin(self) -> bool:
        return self.paths == (STDIN,)


@dataclass(slots=True)
class Book:
    """The outcomes by the place of their file, and which places the tasks stand for."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    tasks: list[int] = field(default_factory=list)


def run(request: Request, advance: Callable[[int], Advance]) -> Run:
    """Do all that is asked for; `advance` is told how many files there are and returns what counts them."""
    rules = registry.codemods()
    selected = _selected(request.config)
    settings = _settings(request, selected)
    if request.reads_stdin:
        outcomes = _from_stdin(request, settings)
    else:
        revision = since(request.since, ".") if request.since else None
        found = [each for each in finder.find(request.paths, request.config) if _counts(each, revision)]
        outcomes = _outcomes(found, request, settings, revision, advance(len(found)))
    if request.mode in ("apply", "add-ignore") and not request.reads_stdin:
        outcomes = [_written(outcome) for outcome in outcomes]
    cards = tuple(codemod.card for name, codemod in rules.items() if name in selected)
    return Run(tuple(outcomes), request.mode, cards)


def settings_of(request: Request, path: str) -> Settings:
    """What a request means for one file."""
    return _for_file(_settings(request, _selected(request.config)), path, request.config)


def _selected(config: Config) -> frozenset[str]:
    rules = registry.codemods()
    for key, selectors in config.selectors().items():
        for selector in registry.unknown(rules, selectors):
            hint = registry.suggestion(rules, selector)
            raise ConfigError(f"{key}: {selector!r} names no rule; {hint}")
    return registry.resolve(rules, config.select, config.ignore, config.extend_select)


def _settings(request: Request, selected: frozenset[str]) -> Settings:
    config = request.config
    return Settings(
        selected,
        Options(config.reduction),
        config.unsafe_fixes,
        config.min_certainty,
        config.fix_certainty,
        deed="ignore" if request.mode == "add-ignore" else "fix",
        follow_imports=not request.reads_stdin,
        rows=config.frameworks,
    )


def _for_file(settings: Settings, path: str, config: Config) -> Settings:
    """The settings for one file: without the rules that the configuration ignores there."""
    if not config.per_file_ignores:
        return settings
    rules = registry.codemods()
    ignored = [
        code
        for pattern, codes in config.per_file_ignores
        if finder.matches(path, pattern, config)
        for code in codes
    ]
    return replace(settings, rules=settings.rules & registry.resolve(rules, ("ALL",), ignored))


def _from_stdin(request: Request, settings: Settings) -> list[Outcome]:
    path, content = request.stdin_filename, sys.stdin.buffer.read()
    if not gate.passes(content):
        return [Outcome(path, gated=True, before=content)]
    outcome = pool.work(Task(path, content, _for_file(settings, path, request.config)))
    return [replace(outcome, before=content)]


def _counts(found: finder.Found, revision: Revision | None) -> bool:
    """Say whether a file is to be looked at; one that has no past at all is no answer to a question of it."""
    if revision is None or found.failure is not None:
        return True
    if not revision.holds(found.path):
        raise RevisionError(f"{found.path} lies outside the repository of the working directory")
    return revision.touches(found.path)


def _outcomes(
    found: Sequence[finder.Found],
    request: Request,
    settings: Settings,
    revision: Revision | None,
    count: Advance,
) -> list[Outcome]:
    book = Book()
    tasks = _tasks(found, book, count, lambda path: _for_file(settings, path, request.config))
    dated = (_dated(task, revision) for task in tasks)
    for number, outcome in enumerate(pool.run(dated, request.jobs)):
        book.outcomes[book.tasks[number]] = outcome
        count(1)
    return [book.outcomes[place] for place in range(len(found))]


def _tasks(
    found: Sequence[finder.Found], book: Book, count: Advance, settings: Callable[[str], Settings]
) -> Iterator[Task]:
    """A task for each file that has to be parsed; the other files are done with at once."""
    for place, each in enumerate(found):
        content = each.failure or files.read(each.path)
        if isinstance(content, bytes) and gate.passes(content):
            book.tasks.append(place)
            yield Task(each.path, content, settings(each.path))
        else:
            failure = content if isinstance(content, Failure) else None
            book.outcomes[place] = Outcome(each.path, failure=failure, gated=failure is None)
            count(1)


def _dated(task: Task, revision: Revision | None) -> Task:
    return replace(task, earlier=revision.earlier(task.path)) if revision else task


def _written(outcome: Outcome) -> Outcome:
    """Put an outcome's new text on disk; where that fails, nothing counts as mended."""
    if outcome.after is None or outcome.before is None or outcome.failure:
        return outcome
    failure = files.write(outcome.path, outcome.before, outcome.after)
    if failure:
        return replace(outcome, failure=failure, after=None, applied=(), remaining=outcome.findings)
    return replace(outcome, written=True)
