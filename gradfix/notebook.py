"""A notebook as one program: its code cells in order, with a map back to the file, byte for byte."""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias

from gradfix.cell import Cell, Extent
from gradfix.defects import Span
from gradfix.magics import CELL_MAGIC, HEAD, PLAIN, Translated, left_out, translated
from gradfix.places import lines

SPACE = re.compile(r"[ \t\n\r]*")
OLDEST = 4
DECODER = json.JSONDecoder()
Fault: TypeAlias = "Callable[[str], tuple[str, int | None] | None]"
"""Why a text isn't Python, and in which line; None: it is."""


class NotebookError(Exception):
    """Why a file is no notebook that can be read, and in which of its cells."""

    def __init__(self, reason: str, cell: int | None = None, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cell = cell
        self.line = line


class ForeignError(Exception):
    """A notebook in another language than Python."""


@dataclass(frozen=True)
class Notebook:
    """A notebook's code cells, and the program that they are: before each cell stands a line with a mark."""

    raw: str
    """The file's text, without the byte order mark."""
    bom: bool
    mark: str
    cells: tuple[Cell, ...]
    parts: tuple[Translated, ...]
    """Each cell as Python."""

    @cached_property
    def program(self) -> str:
        return "".join(f"{part.head}{self.mark}\n{part.text}\n" for part in self.parts)

    @cached_property
    def shown(self) -> str:
        """The same as it stands in the cells."""
        return "".join(f"{self.mark}\n{cell.text}\n" for cell in self.cells)

    @cached_property
    def starts(self) -> tuple[tuple[int, int], ...]:
        """The number of each cell, and the line of the program that it stands behind."""
        sizes = (len(lines(part.text + "\n")) + 1 for part in self.parts)
        return tuple(zip((cell.number for cell in self.cells), accumulate(sizes, initial=1), strict=False))

    @cached_property
    def originals(self) -> list[str]:
        """The lines that stand-ins took the place of."""
        return [line for part in self.parts for line in part.originals]

    def encode(self, program: str) -> bytes:
        """The file with the cells as they are in a rewritten program."""
        raw = self.raw
        texts = list(self._texts(program)) if self.cells else []
        if len(texts) != len(self.cells):
            raise ValueError("a rewrite would go beyond its cell")
        for cell, text in reversed(list(zip(self.cells, texts, strict=True))):
            if text != cell.text:
                _hold_magic(cell.text, text)
                for at, said in reversed(list(cell.rewritten(text))):
                    raw = raw[: at.start] + said + raw[at.end :]
        return (codecs.BOM_UTF8 if self.bom else b"") + raw.encode()

    def _texts(self, program: str) -> Iterator[str]:
        """The texts of the cells, with what stand-ins stood for in its place."""
        found: list[str] = []
        standing = 0
        for line in lines(program):
            body = line.rstrip("\r\n")
            if body in (PLAIN + self.mark, HEAD + self.mark):
                if found:
                    yield _without_last_end(found)
                found = [""]
            elif self.mark in body:
                had, number, rest = self._stand_in(body)
                if number != standing or not found or self._said(number) != had:
                    raise ValueError("a rewrite would change a line that IPython reads")
                found.append(self.originals[number] + rest + line[len(body) :])
                standing += 1
            else:
                found.append(line)
        if standing != len(self.originals):
            raise ValueError("a rewrite would take away a line that IPython reads")
        yield _without_last_end(found)

    def _stand_in(self, body: str) -> tuple[str, int, str]:
        """The Python of a stand-in, its number, and a comment that was written behind it."""
        had, _, behind = body.partition(self.mark)
        number = re.match(r" (\d+)", behind)
        return (had, int(number[1]), behind[number.end() :]) if number else (had, -1, "")

    def _said(self, number: int) -> str:
        return self._stand_ins[number] if number < len(self._stand_ins) else ""

    @cached_property
    def _stand_ins(self) -> list[str]:
        """The Python of each stand-in."""
        marked = (line.partition(self.mark) for line in lines(self.program))
        return [had for had, mark, behind in marked if mark and behind.strip()]

    def cell_at(self, line: int) -> tuple[Cell, int]:
        """The cell in which a line of the program is, and its line there."""
        index = bisect_right(self.starts, line, key=lambda start: start[1]) - 1
        return self.cells[max(index, 0)], line - self.starts[max(index, 0)][1]

    def in_file(self, span: Span) -> Span:
        """Where a stretch of the program stands in the file: lines from 1, columns in characters from 0."""
        start = self._offset(span.line, span.column)
        end = self._offset(span.end_line, span.end_column, before=True)
        return Span(*self.place(start), *self.place(max(start, end)))

    def place(self, offset: int) -> tuple[int, int]:
        """The line of the file and the column there."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.raw))]

    def _offset(self, line: int, column: int, before: bool = False) -> int:
        """Where a character of the program is spelled in the file, or where the one before it ends."""
        cell, number = self.cell_at(line)
        at = sum(map(len, lines(cell.text)[: number - 1])) + column
        if before or at >= len(cell.spelled):
            return cell.spelled[min(at, len(cell.spelled)) - 1].end if at else cell.value.start
        return cell.spelled[at].start


def _hold_magic(old: str, new: str) -> None:
    """The magic of a cell stands above all else in it."""
    magic = CELL_MAGIC.match(old)
    if magic and not new.startswith(magic.group()):
        raise ValueError("a rewrite would stand above the magic of its cell")


def _without_last_end(parts: list[str]) -> str:
    """A cell's text: in the program, one line end more stands behind it."""
    return "".join(parts).removesuffix("\n")


def read(content: bytes, fault: Fault) -> Notebook:
    """Read a notebook of which every cell is Python by itself."""
    bom = content.startswith(codecs.BOM_UTF8)
    raw = _decoded(content)
    fields = _fields(raw)
    metadata = fields.get("metadata")
    if language := _language(metadata if isinstance(metadata, dict) else {}):
        raise ForeignError(language)
    cells = tuple(_cells(raw, fields))
    mark = "# %%"
    while any(mark in cell.text for cell in cells):
        mark += "%"
    parts: list[Translated] = []
    for cell in cells:
        parts.append(_part(cell, mark, sum(len(part.originals) for part in parts), fault))
    return Notebook(raw, bom, mark, cells, tuple(parts))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotebookError(f"not {error.encoding}: byte 0x{content[error.start]:02x}", line=line) from error


def _fields(raw: str) -> dict[str, Any]:
    """What a notebook of a format that is read has on top."""
    try:
        fields = json.loads(raw)
    except json.JSONDecodeError as error:
        raise NotebookError(f"not JSON: {error.msg}", line=error.lineno) from error
    if not isinstance(fields, dict) or not isinstance(fields.get("nbformat"), int):
        raise NotebookError("JSON, but not a notebook: it has no nbformat")
    if fields["nbformat"] < OLDEST:
        told = "is older than those that are read; `jupyter nbconvert --to notebook --inplace` renews it"
        raise NotebookError(f"notebook format {fields['nbformat']} {told}")
    if not isinstance(fields.get("cells"), list):
        raise NotebookError("a notebook without a list of cells")
    return fields


def _language(metadata: Mapping[str, Any]) -> str:
    """The language of a notebook, or of a cell, where it isn't Python."""
    info, kernel, editor = (metadata.get(key) for key in ("language_info", "kernelspec", "vscode"))
    named = ((info, "name"), (kernel, "language"), (editor, "languageId"))
    said = next((str(at[key]) for at, key in named if isinstance(at, dict) and at.get(key)), "")
    if not said and isinstance(kernel, dict) and kernel.get("name") == "ir":
        said = "R"
    return "" if said.lower().startswith(("python", "ipython")) else said


def _cells(raw: str, fields: Mapping[str, Any]) -> Iterator[Cell]:
    """The code cells, with the places of their strings."""
    top = dict(_members(raw, _space(raw, 0)))
    for number, (cell, at) in enumerate(
        zip(fields["cells"], _items(raw, top["cells"].start), strict=True), start=1
    ):
        if not isinstance(cell, dict):
            raise NotebookError("not a cell", number)
        if cell.get("cell_type") != "code":
            continue
        source = cell.get("source")
        listed: list[Any] = source if isinstance(source, list) else [source]
        if not all(isinstance(each, str) for each in listed):
            raise NotebookError("a code cell without a source", number)
        value = dict(_members(raw, at.start))["source"]
        strings = (value,) if isinstance(source, str) else tuple(_items(raw, value.start))
        metadata = cell.get("metadata")
        foreign = _language(metadata) if isinstance(metadata, dict) else ""
        yield Cell(number, raw, value, strings, "".join(listed), foreign)


def _space(raw: str, at: int) -> int:
    found = SPACE.match(raw, at)
    return found.end() if found else at


def _items(raw: str, at: int) -> Iterator[Extent]:
    """Where the items of a list stand that begins at a place."""
    at = _space(raw, at + 1)
    while raw[at] != "]":
        end = DECODER.raw_decode(raw, at)[1]
        yield Extent(at, end)
        at = _space(raw, end)
        if raw[at] == ",":
            at = _space(raw, at + 1)


def _members(raw: str, at: int) -> Iterator[tuple[str, Extent]]:
    """The keys of an object that begins at a place, and where their values stand."""
    at = _space(raw, at + 1)
    while raw[at] != "}":
        key, end = DECODER.raw_decode(raw, at)
        start = _space(raw, _space(raw, end) + 1)
        end = DECODER.raw_decode(raw, start)[1]
        yield key, Extent(start, end)
        at = _space(raw, end)
        if raw[at] == ",":
            at = _space(raw, at + 1)


def _part(cell: Cell, mark: str, first: int, fault: Fault) -> Translated:
    """A cell as Python: what magics run is read as such where it can be."""
    if cell.foreign:
        return left_out(cell.text, mark, first)
    part = translated(cell.text, mark, first)
    found = _fault(part, fault)
    if found is not None and part.originals:
        part = translated(cell.text, mark, first, boldly=False)
        found = _fault(part, fault)
    if found is not None:
        raise NotebookError(found[0], cell.number, found[1])
    return part


def _fault(part: Translated, fault: Fault) -> tuple[str, int | None] | None:
    """Why a cell isn't Python, and in which of its lines."""
    found = fault(f"{part.head}\n{part.text}")
    return (found[0], found[1] - 1 if found[1] else None) if found else None
