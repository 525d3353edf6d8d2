"""The project's files that a traceback speaks of: frames of other machines, by their tails and texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from gradfix import files, finder
from gradfix.config import Config
from gradfix.neighbours import Neighbours
from gradfix.source import Cells, Failure, Source, parse
from gradfix.why.frames import Frame

LARGEST, LARGEST_NOTEBOOK = 1_000_000, 20_000_000
"""Bytes; most of a notebook are its outputs."""
SHORTEST = 8
"""A line shorter than this says too little to find a file by it."""
MOST_SEARCHED = 2_000
ALIKE = 0.8
"""How alike two lines have to be for one to be the other, edited."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A frame as the project's text has it."""

    frame: Frame
    path: str = ""
    """"": it isn't among the files that were given."""
    line: int = 0
    moved: bool = False
    """Whether the quoted line stands somewhere else by now."""
    verified: bool = False
    """Whether the line that is quoted is the one that stands there."""

    @property
    def found(self) -> bool:
        """Whether the line is known in the project."""
        return bool(self.path and self.line)


@dataclass
class Project:
    """The files below the places that were given; read when they are asked for."""

    paths: Sequence[str]
    config: Config
    sources: dict[str, Source | None] = field(default_factory=dict)

    @cached_property
    def files(self) -> list[str]:
        """Every Python file, by its path as the user would write it."""
        return [each.path for each in finder.find(self.paths, self.config) if each.failure is None]

    def source(self, path: str) -> Source | None:
        """A file, if it can be read."""
        if path not in self.sources:
            content = files.read(path)
            most = LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST
            read = parse(path, content) if isinstance(content, bytes) and len(content) <= most else None
            self.sources[path] = None if isinstance(read, Failure) else read
        return self.sources[path]

    def lines(self, path: str) -> list[str]:
        """The lines of a file."""
        source = self.source(path)
        return re.split(r"\r\n|\r|\n", source.text) if source else []

    def shown(self, path: str) -> list[str]:
        """The same as they are written: a notebook's magics aren't Python."""
        source = self.source(path)
        notebook = source.notebook if source else None
        return notebook.shown.split("\n") if notebook else self.lines(path)

    @property
    def cells(self) -> dict[str, Cells]:
        """Of each notebook that was read the cells, with the line that they stand behind."""
        return {path: source.cells for path, source in self.sources.items() if source and source.cells}

    def spot(self, frame: Frame) -> Spot:
        """Where a frame stands in the project; nowhere, if nothing there agrees with it."""
        if frame.in_cell:
            return self._by_text(frame)
        best = Spot(frame)
        for path in self._alike(frame.path):
            spot = self._in_file(frame, path)
            if spot.verified:
                return spot
            best = best if best.path else spot
        return best if best.path or frame.foreign else self._renamed(frame)

    def _renamed(self, frame: Frame) -> Spot:
        """The line of a file that isn't here by this name: where one place has its text and function."""
        found = [
            Spot(frame, path, number, moved=True, verified=True)
            for path in self.files[:MOST_SEARCHED]
            if len(frame.code) >= SHORTEST
            for number, line in enumerate(self.lines(path), 1)
            if _same(line, frame.code) and frame.function in ("", self._function(path, number))
        ]
        return found[0] if len(found) == 1 else Spot(frame)

    def _alike(self, path: str) -> Iterator[str]:
        """The files that a path may stand for, the likeliest first."""
        tail = _parts(path)
        alike = [(_shared(_parts(os.path.abspath(own)), tail), own) for own in self.files]
        at_least = 2 if Frame(path, 0).foreign else 1
        for shared, own in sorted(alike, key=lambda each: (-each[0], each[1])):
            if shared >= at_least:
                yield own

    def _in_file(self, frame: Frame, path: str) -> Spot:
        """The line by its number; where it isn't the quoted one, by its text."""
        lines = self.lines(path)
        there = lines[frame.line - 1] if 0 < frame.line <= len(lines) else ""
        if not frame.code:
            sure = bool(there.strip()) and self._function(path, frame.line) == frame.function
            return Spot(frame, path, frame.line if sure else 0, verified=sure)
        if _same(there, frame.code):
            return Spot(frame, path, frame.line, verified=True)
        places = [number for number, line in enumerate(lines, 1) if _same(line, frame.code)]
        if not places:
            return self._edited(frame, path, lines)
        named = [number for number in places if self._function(path, number) == frame.function]
        line = min(named or places, key=lambda number: abs(number - frame.line))
        return Spot(frame, path, line, moved=True, verified=True)

    def _edited(self, frame: Frame, path: str, lines: Sequence[str]) -> Spot:
        """The line of the same function that is most like the quoted one."""
        from difflib import SequenceMatcher

        nowhere = Spot(frame, "" if frame.foreign else path)
        quoted = "".join(frame.code.split())
        if len(quoted) < SHORTEST or frame.foreign:
            return nowhere
        own = [
            number for number in range(1, len(lines) + 1) if self._function(path, number) == frame.function
        ]
        alike = {n: SequenceMatcher(None, quoted, "".join(lines[n - 1].split())).ratio() for n in own}
        best = max(alike, key=lambda n: (alike[n], -abs(n - frame.line)), default=0)
        return Spot(frame, path, best, moved=True) if best and alike[best] >= ALIKE else nowhere

    def _by_text(self, frame: Frame) -> Spot:
        """A cell's line, where exactly one file has it."""
        if len(frame.code) < SHORTEST:
            return Spot(frame)
        found = [
            self._in_file(frame, path) for path in self.files[:MOST_SEARCHED] if self._mentions(path, frame)
        ]
        found = [spot for spot in found if spot.verified]
        return found[0] if len({spot.path for spot in found}) == 1 else Spot(frame)

    def _mentions(self, path: str, frame: Frame) -> bool:
        return any(_same(line, frame.code) for line in self.lines(path))

    def _function(self, path: str, line: int) -> str:
        """The function that a line is in, as a traceback calls it."""
        from gradfix.why.code import function_at

        source = self.source(path)
        return function_at(source.tree, line) if source else ""

    def reached(self, starts: Iterable[str], most: int) -> list[str]:
        """These files and what they import of the project, the nearest first."""
        from gradfix.why.code import imported

        resolve, found = Neighbours(), dict.fromkeys(os.path.abspath(path) for path in starts)
        waiting, written = list(found), {os.path.abspath(path): path for path in self.files}
        while waiting and len(found) < most:
            path = waiting.pop(0)
            source = self.source(written.get(path) or finder.shown(path))
            for module, level in imported(source.tree) if source else ():
                other = resolve(source.path if source else "", module, level)
                path = os.path.abspath(other.path) if other else ""
                if path and path not in found and len(found) < most:
                    found[path] = None
                    waiting.append(path)
        return [written.get(path) or finder.shown(path) for path in found]


def _parts(path: str) -> list[str]:
    """The parts of a path of any system, from its end."""
    return [part for part in reversed(PurePosixPath(path.replace("\\", "/")).parts) if part not in (".", "/")]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts two paths have in common, from their ends."""
    pairs = zip(one, other, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _same(line: str, quoted: str) -> bool:
    """Whether a line is the one that is quoted, spaces and what was cut off apart."""
    one, other = "".join(line.split()), "".join(quoted.split())
    return bool(one) and (one == other or (len(other) > 30 and one.startswith(other.removesuffix("..."))))
