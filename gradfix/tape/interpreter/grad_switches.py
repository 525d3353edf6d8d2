"""Branches that switch gradients on or off: what follows them is run after each arm by itself."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict

from gradfix.tape.domain.values import Alt
from gradfix.tape.domain.within import Within
from gradfix.tape.interpreter.inside import all_in

SWITCHES = frozenset({"requires_grad", "requires_grad_", "detach_"})
"""What changes whether a tensor that already exists requires grad."""
WORDS = re.compile(rb"\b(?:requires_grad_?|detach_)\b")
SETS_MODE = re.compile(rb"(?:^|[:;])\s*(?:\w+\.)*set_grad_enabled\s*\(")
"""What changes, as a statement, whether anything after it is recorded."""
FILES = 512
"""Of how many texts it is kept which lines these are."""
PARTINGS = 2
"""How often a function's remainder is run once more for that."""


class Parted(ast.If):
    """A branch with what follows it in both arms: its test is not one that was written around all of that."""


class EachMode(ast.Module):
    """Statements that are reached in several grad modes, each on paths of its own."""


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.interpreter.names import Names


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    each_modes: int


class Switches:
    """Which branches part the ways of what follows."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.program = names.program
        self.machine = names.machine
        self.here = names.here
        self.reports = names.reports
        self.trail = names.trail
        self.grad_mode = names.machine.grad_mode
        self.each_modes = 0
        """In how many grad modes, one inside the other, what follows is being run."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def parts_ways(self, statement: ast.If) -> bool:
        """Whether what follows is run after each arm of a branch."""
        return self.names.frame.partings < PARTINGS and self.switches(statement)

    def switches(self, statement: ast.If) -> bool:
        """Whether the arms differ in what requires grad."""
        known = self.program.parting.get(id(statement))
        if known is None:
            known = type(statement) is Parted or self._may_switch(statement)
            if known:
                nodes = (node for part in (*statement.body, *statement.orelse) for node in all_in(part))
                known = any(map(_switches, nodes))
            self.program.parting[id(statement)] = known
        return known

    def several_modes(self) -> bool:
        """Whether what follows is run once in each of the grad modes that there may be."""
        return type(self.grad_mode.mode) is Alt and self.each_modes < PARTINGS

    def sets_mode(self) -> bool:
        """Whether a file sets the grad mode by a statement, so that any block may be reached in several. What
        a function does that nobody in its file names is nobody's business but its own."""
        if self.program.sets is None or self.program.sets[0] != len(self.reports.findings.sources):
            files = self.reports.findings.sources
            self.program.sets = len(files), any(map(self._sets, files))
        return self.program.sets[1]

    def _sets(self, file: str) -> bool:
        """Whether a file sets the grad mode where somebody may come by."""
        lines = self._setting(file)
        if not lines or file != self.reports.findings.main:
            return bool(lines)
        text = b"\n".join(self.reports.findings.sources[file])
        alone = [
            range(node.lineno, (node.end_lineno or node.lineno) + 1)
            for node in self.program.tree.body
            if isinstance(node, ast.FunctionDef)
            and len(re.findall(rb"(?<!\w)%s(?!\w)" % node.name.encode(), text)) == 1
        ]
        return any(not any(line in rows for rows in alone) for line in lines)

    def sets_mode_in(self, node: ast.stmt | ast.Lambda) -> bool:
        """Whether a definition of the analysed file does: it takes no mode for given."""
        lines = self._setting(self.reports.findings.main)
        at = bisect_left(lines, node.lineno)
        return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)

    def _text(self, file: str) -> bytes:
        """The text of a file: that of another one is the same object for all who import it."""
        text = self.program.contents.get(file)
        return b"\n".join(self.reports.findings.sources[file]) if text is None else text

    def _setting(self, file: str) -> list[int]:
        """The lines of a file that set the grad mode."""
        lines = self.program.setting.get(file)
        if lines is None:
            lines = self.program.setting[file] = _with(SETS_MODE, self._text(file), b"set_grad_enabled")
        return lines

    def _may_switch(self, statement: ast.If) -> bool:
        """Whether the text of a branch has a word of what switches."""
        lines = self.program.switching.get(self.here.file)
        if lines is None:
            text = self._text(self.here.file)
            lines = self.program.switching[self.here.file] = _with(WORDS, text, b"requires_grad", b"detach_")
        at = bisect_left(lines, statement.lineno)
        return at < len(lines) and lines[at] <= (statement.end_lineno or statement.lineno)


@lru_cache(FILES)
def _with(pattern: re.Pattern[bytes], text: bytes, *words: bytes) -> list[int]:
    """The lines on which a pattern is found: none where the text has none of its words, as in most files."""
    there = [word for word in words if word in text]
    lines = text.splitlines() if there else []
    rows = {i for word in there for i, line in enumerate(lines) if word in line}
    return [i + 1 for i in sorted(rows) if pattern.search(lines[i])]


def _switches(node: ast.AST) -> bool:
    """Whether what follows may require grad after this where it doesn't without it."""
    return isinstance(node, ast.Attribute) and node.attr in SWITCHES


def with_rest(statement: ast.If, rest: Sequence[ast.stmt]) -> ast.If:
    """A branch with what follows it moved into both arms."""
    moved = Parted(statement.test, [*statement.body, *rest], [*statement.orelse, *rest])
    return ast.copy_location(moved, statement)
