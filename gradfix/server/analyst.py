"""Answers what is asked of a text as the command line would, and keeps what stays true between two texts.

A text is always played whole: an entry may ask of the whole file who reads a name or clears a gradient, and
all entries are judged together at the end, so that of no part of the answer it is known that it holds after
an edit elsewhere. What is kept is what depends on bytes alone: the trees of the neighbours, and the analyses
of the last texts, for as long as what they import is the same. So nothing is played again when it is saved,
or when an edit is taken back.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from gradfix import engine, gate
from gradfix.config import Config, ConfigError, read
from gradfix.finder import excludes, is_excluded
from gradfix.neighbours import LARGEST, MOST, Neighbours, Reading, read_small
from gradfix.outcome import Outcome
from gradfix.plan import Plan, plan_for, played
from gradfix.registry import RegistryError
from gradfix.server.asking import Answer, Ask
from gradfix.source import Failure, Source, parse
from gradfix.tape.analysis import Analysis
from gradfix.tape.effects.frameworks import Row

INSTALLED = frozenset(("site-packages", "dist-packages"))
"""Folders of libraries, which are not the user's to change."""


KEPT = 32
"""How many analyses are kept."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An analysis, with all that it hangs on."""

    path: str
    content: bytes
    named: bool
    frameworks: tuple[tuple[str, Row], ...]
    reading: Reading
    analysis: Analysis


class Analyst:
    """Looks at one text after another."""

    def __init__(self) -> None:
        self._parsed: dict[str, tuple[bytes, Source | Failure]] = {}
        self._kept: deque[Kept] = deque(maxlen=KEPT)

    def answer(self, ask: Ask) -> Answer:
        """What the command line says of this text."""
        try:
            config = read(Path(ask.folder))
            plan = plan_for(config, follows_imports=ask.named)
        except (ConfigError, RegistryError) as error:
            return Answer(Outcome(ask.path), trouble=str(error))
        if ask.named and _is_left_out(ask.path, config):
            return Answer(Outcome(ask.path, skipped="excluded"))
        if not gate.passes(ask.content, config.frameworks):
            return Answer(Outcome(ask.path, gated=True))
        return self._looked(ask, plan)

    def _looked(self, ask: Ask, plan: Plan) -> Answer:
        own = {ask.path: ask.content} if ask.named else {}  # which it may import too, by way of others
        others = {**(ask.others or {}), **own}
        asked: set[str] = set()

        def analyse(source: Source, plan: Plan) -> Analysis:
            kept = self._analysis(source, plan, others)
            asked.update(kept.reading.files)
            return kept.analysis

        plan = replace(plan, config=replace(plan.config, unsafe_fixes=False), analyse=analyse)
        look = engine.fix if ask.mend else engine.found
        return Answer(look(ask.path, ask.content, plan), frozenset(asked))

    def _analysis(self, source: Source, plan: Plan, others: Mapping[str, bytes]) -> Kept:
        """The analysis of a text: an earlier one, where all that it hangs on is the same."""
        hangs_on = (source.path, source.content, plan.follows_imports, plan.config.frameworks)
        for kept in self._kept:
            if (kept.path, kept.content, kept.named, kept.frameworks) == hangs_on:
                if self._neighbours(others).finds(kept.reading):
                    return kept
                self._kept.remove(kept)
                break
        neighbours = self._neighbours(others)
        analysis = played(source, plan, neighbours)
        self._kept.append(Kept(*hangs_on, neighbours.reading, analysis))
        return self._kept[-1]

    def _neighbours(self, others: Mapping[str, bytes]) -> Neighbours:
        """Other files as they are now: those that are open first, then what is on disk."""

        def content(path: str) -> bytes | None:
            text = others.get(path)
            if text is None:
                return read_small(path)
            return text if len(text) <= LARGEST else None

        return Neighbours(content, lambda path: path in others or os.path.isfile(path), self._tree)

    def _tree(self, path: str, content: bytes) -> Source | Failure:
        """A neighbour parsed, once for each content that it has."""
        known = self._parsed.pop(path, None)
        if known is None or known[0] != content:
            known = (content, parse(path, content))
        if len(self._parsed) >= MOST:
            del self._parsed[next(iter(self._parsed))]
        self._parsed[path] = known
        return known[1]


def _is_left_out(path: str, config: Config) -> bool:
    """Say whether a file is not to be looked at: an editor opens what nobody would name."""
    return not INSTALLED.isdisjoint(PurePath(path).parts) or is_excluded(path, excludes(config))
