"""Where text stands in a file: the one place that converts UTF-8 columns, character columns and offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise

from gradfix.defects import Span

LINE_END = re.compile(r"\r\n|\r|\n")
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)")


def lines(text: str) -> list[str]:
    """The lines of a text with their ends, split where Python splits them."""
    cuts = [0, *(end.end() for end in LINE_END.finditer(text))]
    found = [text[start:end] for start, end in pairwise(cuts)]
    return [*found, text[cuts[-1] :]] if cuts[-1] < len(text) else found


class Places:
    """The lines of a text, as Python's own parser counts them (a form feed ends no line).

    `missing` names the lines whose first bytes the text lacks, although `ast` counted them.
    """

    def __init__(self, text: str, missing: Mapping[int, int] | None = None) -> None:
        self.raw = text.encode("utf-8", "surrogatepass")
        self._starts = [0, *(line.end() for line in LINE.finditer(self.raw))]
        self._missing = missing or {}

    def offset(self, line: int, column: int) -> int:
        """The byte offset of an `ast` place."""
        return self._starts[line - 1] + column - self._missing.get(line, 0)

    def offsets(self, span: Span) -> tuple[int, int]:
        """The byte offsets between which an `ast` span stands."""
        return self.offset(span.line, span.column), self.offset(span.end_line, span.end_column)

    def span(self, start: int, end: int) -> Span:
        """The `ast` span between two byte offsets."""
        return Span(*self._place(start), *self._place(end))

    def text(self, span: Span) -> str:
        """The source text of an `ast` span."""
        start, end = self.offsets(span)
        return self.raw[start:end].decode("utf-8", "surrogatepass")

    def in_characters(self, span: Span) -> Span:
        """An `ast` span with its columns counted in characters."""
        return Span(
            span.line,
            self._characters(span.line, span.column),
            span.end_line,
            self._characters(span.end_line, span.end_column),
        )

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + self._missing.get(line, 0)

    def _characters(self, line: int, column: int) -> int:
        start = self._starts[line - 1]
        return len(self.raw[start : start + column].decode("utf-8", "replace"))
