"""Unified diffs that `git apply` and `patch -p1` take, and what they count up to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unidiff.patch import Hunk, PatchSet

CONTEXT = 3
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
NO_NEWLINE = b"\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of a diff."""

    files: int
    hunks: int
    added: int
    removed: int


def unified(path: str, before: bytes, after: bytes) -> bytes:
    """One file's diff, in the file's own encoding; empty where nothing differs."""
    if before == after:
        return b""
    head = f"--- {_name('a/' + path)}\n+++ {_name('b/' + path)}\n".encode("utf-8", "surrogateescape")
    return head + b"".join(_hunks(_lines(before), _lines(after)))


def _lines(content: bytes) -> list[bytes]:
    """Lines as diff knows them: a newline ends one, a carriage return does not."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _name(path: str) -> str:
    """A name as git writes it: quoted where it would not read back, a tab after one with spaces."""
    if any(character in ESCAPES or character < " " for character in path):
        return '"' + "".join(ESCAPES.get(c) or (c if c >= " " else f"\\{ord(c):03o}") for c in path) + '"'
    return path + "\t" if " " in path else path


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    import difflib

    head, tail = _alike(old, new)
    middle = difflib.SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    for group in middle.get_grouped_opcodes(CONTEXT):
        starts, ends = group[0], group[-1]
        yield _header(starts[1] + head, ends[2] + head, starts[3] + head, ends[4] + head)
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(b" ", old[head + start : head + end])
            else:
                yield from _marked(b"-", old[head + start : head + end])
                yield from _marked(b"+", new[head + new_start : head + new_end])


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """How many lines to leave out at the start and at the end: those alike beyond the context."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    return max(0, head - CONTEXT), max(0, tail - CONTEXT)


def _header(start: int, end: int, new_start: int, new_end: int) -> bytes:
    return f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@\n".encode()


def _range(start: int, end: int) -> str:
    """A range counts from 1, an empty one from the line before it."""
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _marked(mark: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + (line if line.endswith(b"\n") else line + NO_NEWLINE)


def count(diff: bytes) -> Counts:
    """Count a diff with unidiff."""
    patches = _parsed(diff)
    hunks = sum(len(patch) for patch in patches)
    return Counts(len(patches), hunks, patches.added, patches.removed)


class LineMap:
    """Where the lines of an old text stand in the one that a diff makes of it."""

    def __init__(self, diff: bytes) -> None:
        self._gone: set[int] = set()
        self._shifts = [(0, 0)]
        for patch in _parsed(diff):
            for hunk in patch:
                self._read(hunk)

    def after(self, line: int) -> int | None:
        """The line's number in the later text; None where the diff removes it."""
        if line in self._gone:
            return None
        at = bisect_right(self._shifts, line, key=itemgetter(0)) - 1
        return line + self._shifts[at][1]

    def _read(self, hunk: Hunk) -> None:
        shift = self._shifts[-1][1]
        old = hunk.source_start + (hunk.source_length == 0)
        for line in hunk:
            if line.is_added:
                shift += 1
                self._shifts.append((old, shift))
            elif line.is_removed:
                self._gone.add(old)
                shift -= 1
                old += 1
                self._shifts.append((old, shift))
            elif line.is_context:
                old += 1


def _parsed(diff: bytes) -> PatchSet:
    from unidiff.patch import PatchSet

    return PatchSet(StringIO(diff.decode("utf-8", "surrogateescape"), newline="\n"))
