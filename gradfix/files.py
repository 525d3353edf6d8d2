"""Reads files and writes them whole or not at all: the only place that touches users' files."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gradfix.outcome import Outcome
from gradfix.source import Failure


def read(path: str) -> bytes | Failure:
    """A file's bytes."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return Failure("read", "not a regular file")
            return file.read()
    except OSError as error:
        return Failure("read", _reason(error))


def _without_waiting(path: str, flags: int) -> int:
    """Opening a pipe would wait until somebody writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def written(outcome: Outcome) -> Outcome:
    """Put an outcome's new text on disk; where that fails, nothing counts as mended."""
    if outcome.after is None or outcome.before is None or outcome.failure:
        return outcome
    failure = write(outcome.path, outcome.before, outcome.after)
    return replace(outcome.unmended, failure=failure) if failure else replace(outcome, written=True)


def write(path: str, before: bytes, after: bytes) -> Failure | None:
    """Put the complete new text in the place of the one that was read; leave alone what has changed since."""
    target = Path(os.path.realpath(path))
    try:
        return _replace(target, before, after)
    except OSError as error:
        return Failure("write", _reason(error))


def _replace(target: Path, before: bytes, after: bytes) -> Failure | None:
    import tempfile

    status = target.stat()
    if not os.access(target, os.W_OK):
        return Failure("write", "not writable")
    handle, beside = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".gradfix", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            _keep_owner_and_mode(beside, status)
            file.flush()
            os.fsync(file.fileno())
        if target.read_bytes() != before:
            return Failure("write", "changed on disk since it was read; left as it is")
        os.replace(beside, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)
    _settle(target.parent)
    return None


def _keep_owner_and_mode(beside: str, status: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(OSError):  # only a privileged user may give a file away
            os.chown(beside, status.st_uid, status.st_gid)
    os.chmod(beside, stat.S_IMODE(status.st_mode))


def _settle(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can do that to a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
