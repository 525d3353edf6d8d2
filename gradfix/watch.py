"""Does the same again whenever a file has changed, and spends a small part of the time on noticing it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from gradfix import finder
from gradfix.config import Config

PAUSE = 0.25
"""Seconds between two looks at the files that there are."""
SHARE = 20
"""How many times longer than it took to look for new files it is until they are looked for again."""
SETTLED = 0.05
"""Seconds without another change after which a file counts as written: editors empty it first."""

Stamps: TypeAlias = Mapping[str, tuple[int, int, int]]
"""By path what changes with a file: when it was written, how large it is, and which file it is."""
Turn: TypeAlias = Callable[[int], Collection[str]]
"""What is done each time, from 0; it says which files it has itself written."""


@dataclass(slots=True)
class Watched:
    """What is looked at: the files that a run would find, and what else a turn reads."""

    paths: tuple[str, ...]
    config: Config
    besides: tuple[str, ...] = ()

    def look(self) -> Stamps:
        """All files as they are now; those that vanish meanwhile are not there."""
        found = (each.path for each in finder.find(self.paths, self.config) if each.failure is None)
        return stamps([*found, *self.besides])


def stamps(paths: Collection[str]) -> Stamps:
    """Those of some files, without what isn't there."""
    return {path: stamp for path in paths if (stamp := _stamp(path)) is not None}


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def again(watched: Watched, turn: Turn) -> NoReturn:
    """Take a turn, and another one as often as something has changed since the last one began."""
    number = 0
    while True:
        before = dict(watched.look())
        written = turn(number)
        before |= stamps(written)
        _wait(watched, before)
        _settle(watched)
        number += 1


def _wait(watched: Watched, before: Stamps) -> None:
    """Return once something has changed: at once for a file that there was, soon for one that is new."""
    due = 0.0
    while stamps(before) == before:
        begun = time.monotonic()
        if begun >= due:
            if watched.look() != before:
                return
            due = time.monotonic() + (time.monotonic() - begun) * SHARE
        time.sleep(PAUSE)


def _settle(watched: Watched) -> None:
    """Return once nothing changes any more."""
    seen = watched.look()
    while True:
        time.sleep(SETTLED)
        before, seen = seen, watched.look()
        if seen == before:
            return
