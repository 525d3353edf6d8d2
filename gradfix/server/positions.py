"""Places as the protocol counts them: lines from 0, columns in the units that editor and server agreed on."""

from __future__ import annotations

from lsprotocol.types import Position, PositionEncodingKind, Range

from gradfix.defects import Span
from gradfix.places import lines
from gradfix.rule import TextEdit

BOM = "\ufeff"
WIDTHS = {PositionEncodingKind.Utf8: ("utf-8", 1), PositionEncodingKind.Utf16: ("utf-16-le", 2)}
"""How a text is written in each kind of units, and the bytes of one; whatever else counts characters."""


class Ruler:
    """The lines of a text as an editor has it, with a byte order mark where that is part of it."""

    def __init__(self, text: str, units: str) -> None:
        self._lines = lines(text)
        self._units = PositionEncodingKind(units)
        self._mark = len(BOM) if text.startswith(BOM) else 0

    def position(self, line: int, character: int) -> Position:
        """The position of a line, from 1, and a column in characters, from 0 and behind any mark."""
        if line > len(self._lines):
            return self.end
        column = character + (self._mark if line == 1 else 0)
        return Position(line - 1, self._width(self._lines[line - 1][:column]))

    def range(self, span: Span) -> Range:
        """The range of a span with columns in characters."""
        return Range(self.position(span.line, span.column), self.position(span.end_line, span.end_column))

    def range_in_bytes(self, span: Span) -> Range:
        """The range of a span as `ast` counts, with columns in bytes."""
        places = ((span.line, span.column), (span.end_line, span.end_column))
        return Range(*(self.position(line, self._characters(line, column)) for line, column in places))

    def edited(self, edit: TextEdit) -> Range:
        """The range of an edit's old text."""
        return Range(
            self.position(edit.line, edit.column - 1), self.position(edit.end_line, edit.end_column - 1)
        )

    def found(self, line: int, text: str) -> Range:
        """Where a text stands in a line, from 1."""
        before, _, _ = self._lines[line - 1].partition(text)
        start, end = self._width(before), self._width(before + text)
        return Range(Position(line - 1, start), Position(line - 1, end))

    def between(self, start: int, end: int) -> Range:
        """The range of whole lines, from 0, the end left out."""
        return Range(self._start(start), self._start(end))

    def length(self, line: int) -> int:
        """How long a line from 0 is, without its end."""
        return self._width(self._lines[line].rstrip("\r\n")) if line < len(self._lines) else 0

    def pointed(self, place: Position) -> tuple[str, int]:
        """The line of a position, and its column in characters."""
        line = self._lines[place.line] if place.line < len(self._lines) else ""
        if self._units not in WIDTHS:
            return line, place.character
        codec, size = WIDTHS[self._units]
        before = line.encode(codec, "surrogatepass")[: place.character * size]
        return line, len(before.decode(codec, "replace"))

    @property
    def end(self) -> Position:
        """Where the text ends."""
        last = self._lines[-1] if self._lines else ""
        open_line = last.rstrip("\r\n") == last and bool(last)
        return (
            Position(len(self._lines) - 1, self._width(last)) if open_line else Position(len(self._lines), 0)
        )

    def _start(self, line: int) -> Position:
        return Position(line, 0) if line < len(self._lines) else self.end

    def _width(self, text: str) -> int:
        if self._units not in WIDTHS:
            return len(text)
        codec, size = WIDTHS[self._units]
        return len(text.encode(codec, "surrogatepass")) // size

    def _characters(self, line: int, column: int) -> int:
        """A column in characters, of one in bytes."""
        if line > len(self._lines):
            return 0
        behind = self._lines[line - 1][self._mark if line == 1 else 0 :]
        return len(behind.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
