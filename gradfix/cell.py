"""A code cell in the text of its notebook's file: what it says, and how to have it say something else."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from gradfix.places import lines

SPELLED = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]", re.DOTALL)
"""One character as JSON spells it."""


class Extent(NamedTuple):
    """Where a JSON value stands in the file's text."""

    start: int
    end: int


@dataclass(frozen=True)
class Cell:
    """A code cell: its text, and where the JSON strings are that it is made of."""

    number: int
    """Among all cells of the notebook, from 1."""
    raw: str
    """The text of the whole file."""
    value: Extent
    strings: tuple[Extent, ...]
    """Several where it is a list; quotes included."""
    text: str
    foreign: str = ""
    """Its language, where it isn't Python."""

    @cached_property
    def spelled(self) -> list[Extent]:
        """Where each character is spelled in the file."""
        return [
            Extent(*found.span())
            for each in self.strings
            for found in SPELLED.finditer(self.raw, each.start + 1, each.end - 1)
        ]

    @cached_property
    def joint(self) -> str:
        """What stands between one line and the next, both strings of a list; "": it is one string."""
        if self.raw[self.value.start] != "[" or not self.strings:
            return ""
        first, *others = self.strings
        between = self.raw[first.end : others[0].start] if others else ""
        return f'"{between or "," + self.raw[self.value.start + 1 : first.start]}"'

    def rewritten(self, text: str) -> Iterator[tuple[Extent, str]]:
        """What to change in the file so that the cell has this text: stretches of it, the first first."""
        if not self.strings:
            yield self.value, json.dumps(text.splitlines(keepends=True))
            return
        for start, end, new in _differences(self.text, text):
            yield self._change(start, end, new)

    def _change(self, start: int, end: int, new: str) -> tuple[Extent, str]:
        """Other characters in the place of some: where lines are strings of their own, new ones are too."""
        last = end == len(self.text)
        said = self._said(new)
        if self.joint and new.endswith("\n") and not last:
            said += self.joint
        if self.joint and new and start == len(self.text) and self.text.endswith("\n"):
            said = self.joint + said
        ends = self.spelled[-1].end if self.spelled else self.strings[0].start + 1
        begin = self.spelled[start].start if start < len(self.spelled) else ends
        if last and not new and start:  # what stands between the lines goes with the last one
            begin = self.spelled[start - 1].end
        return Extent(begin, ends if last else self.spelled[end].start), said

    def _said(self, text: str) -> str:
        """A text as this cell spells it."""
        parts = text.splitlines(keepends=True) if self.joint else [text]
        return self.joint.join("".join(map(self._spell, part)) for part in parts)

    def _spell(self, character: str) -> str:
        """A character as this cell spells it, else as the file does with what isn't ASCII."""
        return self._spellings.get(character) or json.dumps(character, ensure_ascii=self.raw.isascii())[1:-1]

    @cached_property
    def _spellings(self) -> Mapping[str, str]:
        return {
            character: self.raw[at.start : at.end]
            for character, at in zip(self.text, self.spelled, strict=True)
        }


def _differences(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """The stretches of characters that differ, found line by line."""
    before, after = lines(old), lines(new)
    at = [0, *accumulate(map(len, before))]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        had, has = "".join(before[start:end]), "".join(after[new_start:new_end])
        rest = min(len(had), len(has))
        head = next((i for i in range(rest) if had[i] != has[i]), rest)
        tail = next((i for i in range(rest - head) if had[-1 - i] != has[-1 - i]), rest - head)
        yield at[start] + head, at[end] - tail, has[head : len(has) - tail]
