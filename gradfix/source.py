"""From a file's bytes to its text and `ast`, or to a named failure; the only place that parses with `ast`."""

from __future__ import annotations

import ast
import codecs
import io
import re
import sys
import tokenize
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from gradfix.places import LINE_END, Places

if TYPE_CHECKING:
    from gradfix.notebook import Notebook

Stage: TypeAlias = Literal["read", "decode", "parse", "tape", "rewrite", "check", "write"]

Cells: TypeAlias = "tuple[tuple[int, int], ...]"
"""The number of each cell of a notebook, with the line that it stands behind."""

NOTEBOOK = ".ipynb"
PYTHON_2 = re.compile(
    r"Missing parentheses in call to '(?:print|exec)'"
    r"|leading zeros in decimal integer literals"
)
PYTHON_2_LINE = re.compile(
    r"\s*(?:print\s+[^\s=(]|print\s*>>|exec\s+[^\s=(]|raise\s+\w+\s*,|except\s+[^:()]+,[^:()]+:)"
    r"|.*(?:<>|`[^`]*`|\b0[xX]?[0-9a-fA-F]+L\b|\b[1-9]\d*L\b)"
)
NO_SYNTAX = re.compile(r"(?!unterminated|unmatched|f-string|.* was never closed|closing parenthesis)")
"""What a Python says of a line that may be of another Python: not that a text or bracket has no end."""
MAYBE_NEWER = re.compile(r"invalid syntax|expected |f-string|iterable unpacking cannot")
"""What a Python says of syntax that only later ones know, and of plain mistakes too."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a file could not be worked on, and at which stage."""

    stage: Stage
    reason: str
    line: int | None = None
    """In the file; in a notebook, in the cell."""
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Foreign(Failure):
    """A notebook in another language: nobody's fault, and nothing to report."""


@dataclass(frozen=True)
class Source:
    """A file as the tape reads it."""

    path: str
    content: bytes
    text: str
    """Without the byte order mark, line ends as they are."""
    tree: ast.Module
    encoding: str
    """As Python's codecs name it; "utf-8-sig" with a byte order mark."""
    newline: str
    """The first line end in the file, a plain newline if there is none."""
    notebook: Notebook | None = None
    """Where the text is that of a notebook's cells."""

    @property
    def bom(self) -> bool:
        return self.encoding == "utf-8-sig"

    @cached_property
    def places(self) -> Places:
        return Places(self.text)

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines of its bytes, without their ends."""
        return self.content.splitlines()

    @property
    def cells(self) -> Cells:
        """The number of each cell of a notebook, with the line that it stands behind."""
        return () if self.notebook is None else self.notebook.starts

    @property
    def program(self) -> bytes:
        """The bytes whose lines count: the file's own, or those of a notebook's cells."""
        return self.content if self.notebook is None else self.text.encode("utf-8", "surrogatepass")

    def encode(self, text: str) -> bytes:
        """The bytes of the file with another text."""
        return text.encode(self.encoding) if self.notebook is None else self.notebook.encode(text)


def placed_in(cells: Cells, line: int) -> tuple[int | None, int]:
    """The cell in which a line of a notebook's program is, and its line there."""
    index = bisect_right(cells, line - 1, key=itemgetter(1)) - 1
    return (cells[index][0], line - cells[index][1]) if index >= 0 else (None, line)


def by_cell(source: Source) -> dict[int, bytes]:
    """The text of each cell of a notebook, with an end to its last line."""
    cells = source.notebook.cells if source.notebook else ()
    ended = ((cell.number, cell.text.removesuffix("\n") + "\n") for cell in cells)
    return {number: text.encode("utf-8", "surrogatepass") for number, text in ended}


def parse(path: str, content: bytes) -> Source | Failure:
    """Read a file's bytes as Python would, a notebook's as Jupyter."""
    if path.endswith(NOTEBOOK):
        return _notebook(path, content)
    decoded = _decode(content)
    if isinstance(decoded, Failure):
        return decoded
    encoding, text = decoded
    tree = _tree(text)
    if isinstance(tree, Failure):
        return tree
    end = LINE_END.search(text)
    return Source(path, content, text, tree, encoding, end.group() if end else "\n")


def _notebook(path: str, content: bytes) -> Source | Failure:
    """A notebook's cells as one program, if each of them is Python by itself."""
    from gradfix.notebook import ForeignError, NotebookError, read

    try:
        notebook = read(content, _fault)
    except NotebookError as error:
        return Failure("parse", error.reason, error.line, error.cell)
    except ForeignError as error:
        return Foreign("parse", f"a notebook in {error}")
    tree = _tree(notebook.program)
    if isinstance(tree, Failure):
        return tree
    encoding = "utf-8-sig" if notebook.bom else "utf-8"
    return Source(path, content, notebook.program, tree, encoding, "\n", notebook)


def is_notebook(content: bytes) -> bool:
    """Whether bytes that have no name look like a notebook's."""
    return content.lstrip(codecs.BOM_UTF8 + b" \t\r\n").startswith(b"{") and b'"nbformat"' in content


def _fault(text: str) -> tuple[str, int | None] | None:
    tree = _tree(text)
    return (tree.reason, tree.line) if isinstance(tree, Failure) else None


def _decode(content: bytes) -> tuple[str, str] | Failure:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Failure("decode", "UTF-16, which Python does not read as source", 1)
    if b"\0" in content:
        return Failure("decode", "contains a NUL byte", content.count(b"\n", 0, content.index(b"\0")) + 1)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return encoding, content.decode(encoding)
    except SyntaxError as error:
        return Failure("decode", str(error.msg), 1)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Failure("decode", f"not {error.encoding}: byte 0x{content[error.start]:02x}", line)
    except (LookupError, UnicodeError) as error:
        return Failure("decode", str(error), 1)


def _tree(text: str) -> ast.Module | Failure:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return Failure("parse", _reason(error), error.lineno)
    except (RecursionError, MemoryError):
        return Failure("parse", "nested too deeply for Python's parser")
    except ValueError as error:
        return Failure("parse", str(error))


def expression(text: str) -> ast.expr | None:
    """An expression that is quoted from a source; None where it isn't one by itself."""
    tree = _tree(text)
    whole = tree.body if isinstance(tree, ast.Module) else []
    return whole[0].value if len(whole) == 1 and isinstance(whole[0], ast.Expr) else None


def _reason(error: SyntaxError) -> str:
    running = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    if error.msg.startswith("multiple exception types"):
        return f"Python 2, or newer than {running} ({error.msg})"
    if PYTHON_2.search(error.msg) or (NO_SYNTAX.match(error.msg) and PYTHON_2_LINE.match(error.text or "")):
        return f"Python 2 ({error.msg})"
    if MAYBE_NEWER.match(error.msg):
        return f"{error.msg} (read as {running})"
    return error.msg
