"""Answers what is asked of a text as the command line would, and keeps what stays true between two texts.

A text is always played whole: an entry may ask of the whole file who reads a name or clears a gradient, and
all entries are judged together at the end, so that of no part of the answer it is known that it holds after
an edit elsewhere. What is kept is what depends on bytes alone: the trees of the neighbours, and the analysis
of the text that is to be mended next.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from gradfix import engine, gate
from gradfix.config import Config, ConfigError, read
from gradfix.finder import excludes, is_excluded
from gradfix.neighbours import LARGEST, MOST, Neighbours, read_small
from gradfix.outcome import Outcome
from gradfix.plan import Plan, plan_for, played
from gradfix.registry import RegistryError
from gradfix.server.asking import Answer, Ask
from gradfix.source import Failure, Source, parse
from gradfix.tape.analysis import Analysis

INSTALLED = frozenset(("site-packages", "dist-packages"))
"""Folders of libraries, which are not the user's to change."""


class Analyst:
    """Looks at one text after another."""

    def __init__(self) -> None:
        self._parsed: dict[str, tuple[bytes, Source | Failure]] = {}
        self._last: tuple[Ask, Config, Analysis] | None = None
        """The analysis of the last text that was played, with what was asked."""

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
        neighbours = self._neighbours({**(ask.others or {}), **own})

        def analyse(source: Source, plan: Plan) -> Analysis:
            return self._analysis(replace(ask, content=source.content, mend=False), source, plan, neighbours)

        plan = replace(plan, config=replace(plan.config, unsafe_fixes=False), analyse=analyse)
        look = engine.fix if ask.mend else engine.found
        if not ask.mend:
            self._last = None  # what it imports may be another on disk by now
        return Answer(look(ask.path, ask.content, plan), neighbours.asked)

    def _analysis(self, ask: Ask, source: Source, plan: Plan, neighbours: Neighbours) -> Analysis:
        """The analysis of a text: that of the last one, where nothing else is asked."""
        if self._last is None or self._last[:2] != (ask, plan.config):
            self._last = (ask, plan.config, played(source, plan, neighbours))
        return self._last[2]

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
