"""Where the lines of a text stand after an edit, and diagnostics of the text before it on them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

import attrs
from lsprotocol.types import Diagnostic, Position, Range

from gradfix.places import lines
from gradfix.server.positions import Ruler


class Shift:
    """The lines of one text in another, counted from 0."""

    def __init__(self, before: str, after: str) -> None:
        old, new = lines(before), lines(after)
        self._head, self._tail = _alike(old, new)
        self._last = len(old) - self._tail
        self._by = len(new) - len(old)
        self._middle = dict(
            _pairs(old[self._head : self._last], new[self._head : len(new) - self._tail], self._head)
        )

    def __call__(self, line: int) -> int | None:
        """The line's number in the later text; None where it is gone."""
        if line < self._head:
            return line
        return self._middle.get(line) if line < self._last else line + self._by


def moved(diagnostics: Iterable[Diagnostic], shift: Shift, ruler: Ruler, uri: str) -> Iterator[Diagnostic]:
    """Diagnostics of an earlier text, on the lines of a later one; those whose lines are gone go too."""
    for each in diagnostics:
        range_ = _moved(each.range, shift, ruler)
        if range_ is None:
            continue
        related = [
            one
            if one.location.uri != uri
            else attrs.evolve(one, location=attrs.evolve(one.location, range=at))
            for one in each.related_information or ()
            if (at := _moved(one.location.range, shift, ruler) if one.location.uri == uri else range_)
        ]
        yield attrs.evolve(each, range=range_, related_information=related or None)


def _moved(range_: Range, shift: Shift, ruler: Ruler) -> Range | None:
    start, end = shift(range_.start.line), shift(range_.end.line)
    if start is None:
        return None
    if end is None or end < start:
        end = start
    last = (
        range_.end.character if end != start or range_.end.line == range_.start.line else ruler.length(start)
    )
    first = Position(start, min(range_.start.character, ruler.length(start)))
    return Range(first, Position(end, min(last, ruler.length(end))))


def _alike(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines are alike at the start and at the end."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    return head, tail


def _pairs(old: Sequence[str], new: Sequence[str], head: int) -> Iterator[tuple[int, int]]:
    """The lines between that are alike, and those that stand where others stood."""
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag in ("equal", "replace"):
            yield from (
                (head + start + i, head + new_start + i) for i in range(min(end - start, new_end - new_start))
            )
