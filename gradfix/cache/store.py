"""One file of SQLite for all outcomes: runs beside each other, killed runs and full disks are its business.

What goes wrong with it ends its use for this run. What is in it may be anything: it is believed only with its
checksum, and a file that is something else is replaced.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TypeAlias, TypeVar

from gradfix.cache import place

Row: TypeAlias = tuple[bytes, bytes, bytes]
"""A key, what was read of other files, and what was found."""

T = TypeVar("T")

LIMIT = 128_000_000
"""Bytes that the file may have."""
BUSY = 2.0
"""Seconds to wait for another run, which holds the file for as long as it takes to write a few outcomes."""
MANY = 64
"""Outcomes that are written at a time."""
HOUR, DAY = 3600, 24
TABLE = "CREATE TABLE outcomes (key BLOB PRIMARY KEY, reading BLOB, found BLOB, checksum BLOB, used INTEGER)"
"""When an outcome was used last is counted in hours."""
OLDEST = (
    "DELETE FROM outcomes WHERE rowid IN (SELECT rowid FROM outcomes ORDER BY used, rowid"
    " LIMIT (SELECT count(*) / 4 + 1 FROM outcomes))"
)


class Store:
    """Rows by their keys."""

    def __init__(self, folder: str, limit: int = LIMIT) -> None:
        self.trouble = ""
        """Why it isn't used any more."""
        self._folder = folder
        self._limit = limit
        self._hour = int(time.time()) // HOUR
        self._new: list[Row] = []
        self._used: list[bytes] = []
        self._file: sqlite3.Connection | None = None
        self._guarded(self._open)

    def get(self, key: bytes) -> Row | None:
        """The row of a key, as it was put there."""
        found = self._guarded(lambda: self._found(key))
        if found is None:
            return None
        reading, said, checksum, used = found
        if not (isinstance(reading, bytes) and isinstance(said, bytes) and isinstance(used, int)):
            return None
        if checksum != _checksum((key, reading, said)):
            return None
        if abs(self._hour - used) >= DAY:
            self._used.append(key)
        return key, reading, said

    def put(self, row: Row) -> None:
        """Keep a row."""
        if self._file is not None:
            self._new.append(row)
            if len(self._new) >= MANY:
                self._guarded(self._write)

    def close(self) -> None:
        """Write what is left."""
        if self._new or self._used:
            self._guarded(self._write)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _guarded(self, work: Callable[[], T]) -> T | None:
        """What comes of some work; where the file fails it, the run goes on without."""
        try:
            return work()
        except sqlite3.OperationalError as error:
            self._give_up(error)
        except sqlite3.DatabaseError as error:  # what is damaged is made anew by the next run
            self._give_up(error)
            with suppress(OSError):
                place.discard(self._folder)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
        return None

    def _give_up(self, error: Exception) -> None:
        self.trouble = " ".join(str(error).split())
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        place.make(self._folder)
        if os.path.islink(f"{self._folder}/{place.NAME}"):  # what it leads to is somebody else's
            place.discard(self._folder)
        try:
            self._file = self._opened()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # something else of that name
            place.discard(self._folder)
            self._file = self._opened()

    def _opened(self) -> sqlite3.Connection:
        name = f"{self._folder}/{place.NAME}"
        file = sqlite3.connect(name, timeout=BUSY, isolation_level=None, cached_statements=8)
        try:
            file.execute("PRAGMA trusted_schema = OFF")
            file.execute("PRAGMA synchronous = OFF")  # a power cut may cost what is kept, and nothing else
            if not _tables(file):
                file.execute(TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
            if _tables(file) != [TABLE]:
                raise sqlite3.DatabaseError("not a file of gradfix's")
        except BaseException:
            file.close()
            raise
        return file

    def _found(self, key: bytes) -> tuple[object, ...] | None:
        if self._file is None:
            return None
        asked = "SELECT reading, found, checksum, used FROM outcomes WHERE key = ?"
        found: tuple[object, ...] | None = self._file.execute(asked, (key,)).fetchone()
        return found

    def _write(self) -> None:
        new, used = self._new, self._used
        self._new, self._used = [], []
        if self._file is None:
            return
        rows = [(*row, _checksum(row), self._hour) for row in new]
        self._file.execute("BEGIN IMMEDIATE")
        self._file.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", rows)
        self._file.executemany(
            "UPDATE outcomes SET used = ? WHERE key = ?", [(self._hour, key) for key in used]
        )
        while self._size() > self._limit:
            self._file.execute(OLDEST)
        self._file.execute("COMMIT")

    def _size(self) -> int:
        pages, free, size = (self._asked(name) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * size

    def _asked(self, pragma: str) -> int:
        assert self._file is not None
        return int(self._file.execute(f"PRAGMA {pragma}").fetchone()[0])


def _tables(file: sqlite3.Connection) -> list[str]:
    """How everything in a file was made."""
    return [sql for (sql,) in file.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")]


def _checksum(row: Row) -> bytes:
    """Of a row, whose parts can't be taken for each other."""
    key, reading, found = row
    return blake2b(b"%d:" % len(reading) + key + reading + found, digest_size=16).digest()
