"""Outcomes that are found again: by what is known before a file is read, if all that it read is the same."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradfix.cache.key import key, settings_of
from gradfix.cache.records import UnlikeError, reader, written
from gradfix.neighbours import Neighbours, Reading
from gradfix.outcome import Outcome
from gradfix.plan import Plan
from gradfix.task import Task

if TYPE_CHECKING:
    from gradfix.cache.store import Store

LARGEST = 16_000_000
"""Bytes that what is kept of a file may have."""


class Cache:
    """What earlier runs have found, for one plan; its file is opened when the first outcome is asked for."""

    def __init__(self, folder: str, plan: Plan) -> None:
        self.folder = folder
        self.settings = settings_of(plan)
        self.trouble = ""
        """Why it was not used, or not any more."""
        self._now = Neighbours()
        self._store: Store | None = None

    def find(self, task: Task) -> Outcome | None:
        """What was found in a file, if it would be found again."""
        store = self._opened()
        row = store.get(key(task, self.settings)) if store is not None else None
        if row is None:
            return None
        _, reading, found = row
        try:
            if not self._now.finds(_reading(_unpacked(reading))):
                return None
            outcome: Outcome = reader(Outcome)(_unpacked(found))
        except (UnlikeError, ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error):
            return None  # the work of somebody else
        return replace(outcome, path=task.path, before=None if outcome.before is None else task.content)

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Keep what was found; what failed is tried again, and the text itself is at hand."""
        store = self._opened()
        if store is None or outcome.failure is not None or outcome.reading is None:
            return
        before = None if outcome.before is None else b""
        bare = replace(outcome, path="", before=before, reading=None)
        reading, found = _packed(_told(outcome.reading)), _packed(written(bare))
        store.put((key(task, self.settings), reading, found))

    def close(self) -> None:
        """Write what is left to write."""
        if self._store is not None:
            self._store.close()
            self.trouble = self._store.trouble
            self._store = None

    def _opened(self) -> Store | None:
        if self._store is None and not self.trouble:
            try:
                from gradfix.cache.store import Store
            except ImportError as error:  # a Python that was built without SQLite
                self.trouble = str(error)
                return None
            self._store = Store(self.folder)
        return self._store


def _told(reading: Reading) -> object:
    """What was read of other files: what isn't there apart, since that is most of it."""
    missing = [path for path, short in reading.files.items() if short is None]
    there = {path: short.hex() for path, short in reading.files.items() if short is not None}
    return ["\0".join(missing), there, reading.roots]


def _reading(told: Any) -> Reading:
    missing, there, roots = told
    files: dict[str, bytes | None] = dict.fromkeys(missing.split("\0"))
    files.update((path, bytes.fromhex(short)) for path, short in there.items())
    return Reading(files, {own: tuple(folders) for own, folders in roots.items()})


def _packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode("ascii"), 1)


def _unpacked(packed: bytes) -> Any:
    """What was packed, unless it would be more than anybody has packed."""
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(packed, LARGEST)
    if not unpacking.eof:
        raise ValueError
    return json.loads(text)
