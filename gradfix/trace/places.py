"""Finds the user's line: the innermost frame that is neither torch's, nor a library's, nor the recorder's."""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
from functools import cache
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeAlias

import torch

from gradfix.trace.report import Failure, Place

Spot: TypeAlias = "tuple[CodeType, int]"
"""A place as cheap as it comes: resolved only when somebody asks."""

TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


@cache
def foreign_folders() -> tuple[str, ...]:
    """Folders whose code is not the user's own."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = sysconfig.get_paths()
    found = [os.path.dirname(os.path.abspath(os.__file__)), *(paths[name] for name in names)]
    return tuple({os.path.abspath(path) + os.sep for path in found})


class Places:
    """Tells user frames from others, and remembers every line that called torch."""

    def __init__(self) -> None:
        self.foreign = foreign_folders()
        self.known: dict[str, bool] = {}
        self.seen: dict[tuple[int, int], Spot] = {}

    def is_user(self, filename: str) -> bool:
        """True for the user's files, notebook cells among them."""
        known = self.known.get(filename)
        if known is None:
            known = self.known[filename] = self._judge(filename)
        return known

    def _judge(self, filename: str) -> bool:
        if filename.startswith(("<frozen", "<string>", "<__array_function__")) or not filename:
            return False
        path = os.path.abspath(filename)
        if path.startswith((TORCH, OWN)) or "site-packages" in path or "dist-packages" in path:
            return False
        return not path.startswith(self.foreign)

    def frame(self, depth: int = 1) -> FrameType | None:
        """The innermost user frame; failing that, the innermost one outside torch and the recorder."""
        start: FrameType | None = sys._getframe(depth)
        frame, known = start, self.known
        while frame is not None:
            name = frame.f_code.co_filename
            user = known.get(name)
            if user is None:
                user = self.is_user(name)
            if user:
                return frame
            frame = frame.f_back
        return self._outside(start)

    def _outside(self, frame: FrameType | None) -> FrameType | None:
        while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith((TORCH, OWN)):
            frame = frame.f_back
        return frame

    def here(self, depth: int = 2) -> Spot | None:
        """The user's place in the call that is under way."""
        frame: FrameType | None = sys._getframe(depth)
        known = self.known
        while frame is not None:
            code = frame.f_code
            user = known.get(code.co_filename)
            if user or (user is None and self.is_user(code.co_filename)):
                spot = self.seen.get((id(code), frame.f_lasti))
                return spot if spot is not None else self._noted(code, frame.f_lasti)
            frame = frame.f_back
        frame = self._outside(sys._getframe(depth))
        return self._noted(frame.f_code, frame.f_lasti) if frame is not None else None

    def _noted(self, code: CodeType, lasti: int) -> Spot:
        """One object for each place, however often it is met."""
        key = (id(code), lasti)
        spot = self.seen.get(key)
        if spot is None:
            spot = self.seen[key] = (code, lasti)
        return spot

    def lines(self) -> dict[str, list[int]]:
        """Every user line that called torch, by file."""
        found: dict[str, set[int]] = {}
        for spot in self.seen.values():
            if self.is_user(spot[0].co_filename):
                place = resolve(spot)
                found.setdefault(place["file"], set()).update((place["line"], place["end_line"]))
        return {name: sorted(lines) for name, lines in found.items()}


RESOLVED: dict[tuple[int, int], tuple[Spot, Place]] = {}
"""Places already looked up; each holds its code, so that no other one can take its identity."""


def resolve(spot: Spot) -> Place:
    """The file, lines and (from Python 3.11) columns of a spot."""
    key = (id(spot[0]), spot[1])
    found = RESOLVED.get(key)
    if found is None:
        found = RESOLVED[key] = (spot, looked_up(spot))
    return found[1]


def looked_up(spot: Spot) -> Place:
    """The same, from the code's table of positions."""
    code, lasti = spot
    line = end_line = code.co_firstlineno
    column = end_column = None
    if lasti < 0:
        return of_line(code.co_filename, line)
    if sys.version_info >= (3, 11):
        found = next(itertools.islice(code.co_positions(), lasti // 2, None), None)
        if found is not None and found[0] is not None:
            line, end_line, column, end_column = found[0], found[1] or found[0], found[2], found[3]
    else:
        line = end_line = line_at(code, lasti)
    return Place(
        file=absolute(code.co_filename), line=line, end_line=end_line, column=column, end_column=end_column
    )


def line_at(code: CodeType, lasti: int) -> int:
    """The line of an instruction, for interpreters that keep no columns."""
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def of_line(file: str, line: int) -> Place:
    """A place of which only the line is known."""
    return Place(file=absolute(file), line=line, end_line=line, column=None, end_column=None)


def absolute(filename: str) -> str:
    """Real files by their full path; `<cell>` names as they are."""
    return filename if filename.startswith("<") else os.path.abspath(filename)


def shown(place: Place) -> str:
    """A place as editors open it, a notebook's cell by its number."""
    file = place["file"]
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{cell(file) or (file if near.startswith(os.pardir) else near)}:{place['line']}"


def cell(filename: str) -> str:
    """What IPython calls a cell whose code it compiled under this name; empty elsewhere."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    try:
        named = shell.compile.format_code_name(filename)
    except AttributeError:
        return ""
    return " ".join(named) if named else ""


def failure(error: BaseException, trace: TracebackType | None) -> Failure:
    """An exception with the innermost user line of its traceback."""
    places, place = Places(), None
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if places.is_user(name):
            place = of_line(name, trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = of_line(error.filename, error.lineno)
    return Failure(type=type(error).__name__, message=str(error)[:2000], place=place)
