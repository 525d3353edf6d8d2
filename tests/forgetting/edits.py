"""Texts with some of their parts replaced, and where a place in the new text stood in the old one."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from gradfix.defects import Span


@dataclass(frozen=True, order=True, slots=True)
class Edit:
    """Bytes of a text, and what stands in their place."""

    start: int
    end: int
    new: bytes


class Text:
    """A source text in bytes, as `ast` counts its columns."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins."""
        starts = [0]
        for line in self.content.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.alias) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg | ast.alias) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def on_its_lines(self, start: int, end: int, new: bytes) -> Edit:
        """A replacement that leaves all that follows on the lines where it stands."""
        return Edit(start, end, new + b"\n" * self.content.count(b"\n", start, end))


class Edited:
    """A text after some edits."""

    def __init__(self, text: Text, edits: Iterable[Edit]) -> None:
        self.text = text
        self.edits = sorted(edits)
        parts, at = [], 0
        for edit in self.edits:
            parts += [text.content[at : edit.start], edit.new]
            at = max(at, edit.end)
        self.new = Text(b"".join([*parts, text.content[at:]]))

    @property
    def sound(self) -> bool:
        """Whether no edit falls into what another one has replaced."""
        pairs = zip(self.edits, self.edits[1:], strict=False)
        return all(one.end <= other.start for one, other in pairs)

    @cached_property
    def _pieces(self) -> tuple[list[int], list[tuple[int, bool]]]:
        """Where pieces of the new text begin, and for each: where in the old one, and whether it was kept."""
        begins, olds, new, old = [0], [(0, True)], 0, 0
        for edit in self.edits:
            new += edit.start - old
            begins += [new, new + len(edit.new)]
            olds += [(edit.start, False), (edit.end, True)]
            new, old = new + len(edit.new), edit.end
        return begins, olds

    def before(self, span: Span) -> tuple[int, int]:
        """Where a place of the new text began and ended in the old one."""
        first = self._old(self.new.offset(span.line, span.column))
        return first, self._old(self.new.offset(span.end_line, span.end_column))

    def _old(self, offset: int) -> int:
        begins, olds = self._pieces
        piece = bisect_right(begins, offset) - 1
        old, kept = olds[piece]
        return old + (offset - begins[piece] if kept else 0)
