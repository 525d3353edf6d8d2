"""Many repositories in one run: each is looked at as by itself, the files of all are worked on together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from gradfix import finder
from gradfix.config import ConfigError
from gradfix.outcome import RuleCard, Run
from gradfix.session import Advance, Part, Request, work
from gradfix.source import Failure

Ask = Callable[[str], Request]
"""What is asked of a repository, which its own settings say."""


def paths_in(text: str) -> tuple[str, ...]:
    """The paths that a list names, one on a line; empty lines and those that begin with # name none."""
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    return tuple(dict.fromkeys(os.path.normpath(line) for line in lines if line and line[0] != "#"))


def run(paths: Sequence[str], ask: Ask, request: Request, advance: Callable[[int], Advance]) -> Run:
    """Do what is asked for in all; `advance` is told how many there are and returns what counts them."""
    advanced = advance(len(paths))
    results: dict[str, Run] = {}
    for part in work(_parts(paths, ask, request), request.work, request.step):
        (path,) = part.request.paths
        results[path] = part.delivered()
        advanced(1)
    ordered = {path: results[path] for path in paths}
    outcomes = chain.from_iterable(each.outcomes for each in ordered.values())
    return Run(tuple(outcomes), request.mode, lambda: _cards([*ordered.values()]), ordered)


def _parts(paths: Sequence[str], ask: Ask, request: Request) -> Iterator[Part]:
    """Each repository, looked through when it is its turn; a file of two of them counts for the first."""
    seen: set[str] = set()
    for path in paths:
        try:
            own = ask(path)
        except ConfigError as error:
            failed = finder.Found(path, Failure("read", str(error)))
            yield Part(replace(request, paths=(path,)), [failed], lambda _: None)
        else:
            yield Part(own, [*finder.find((path,), own.plan.config, seen)], lambda _: None)


def _cards(runs: Sequence[Run]) -> tuple[RuleCard, ...]:
    """What may be said of the rules that any of them has selected."""
    every = {card.code: card for each in runs for card in each.rules()}
    return tuple(every[code] for code in sorted(every))
