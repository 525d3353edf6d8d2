"""Where execution is: the file, and the path that was taken to get there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypedDict

from gradfix.defects import Span
from gradfix.tape.domain.paths import ALWAYS
from gradfix.tape.domain.values import Foreign
from gradfix.tape.domain.within import Within

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.trail import Trail
    from gradfix.tape.domain.values import Place


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    path: Path
    assumed: Path
    arms: tuple[tuple[int, int], ...]
    narrow: bool
    file: str


class Here:
    """The file and path that are being executed."""

    def __init__(self, main: str, trail: Trail) -> None:
        self.main = main
        """The file under analysis."""
        self.trail = trail
        self.file = main
        self.path: Path = ALWAYS
        self.assumed: Path = ALWAYS
        """The part of the path that no statement tests: which alternative of a value is looked at."""
        self.arms: tuple[tuple[int, int], ...] = ()
        """Which alternative of which values is looked at: what is done for one of them isn't for another."""
        self.narrow = False
        """Whether a write is looked at once for each path on which what it writes may be in a graph."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def go_on(self, path: Path, assumed: Path | None = None) -> None:
        """From here on, to the end of what is running, everything happens on this path."""
        self.path = path
        if assumed is not None:
            self.assumed = assumed

    @property
    def at_home(self) -> bool:
        """Whether what is executed stands in the file under analysis, not in one that it imports."""
        return self.file == self.main

    def at(self, node: ast.AST) -> Place:
        """The place of a node of the file that is being executed."""
        return node if self.file == self.main else Foreign(node, self.file)


def span_of(node: ast.AST) -> Span:
    """The span of an `ast` node."""
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
