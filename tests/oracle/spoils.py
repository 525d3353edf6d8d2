"""Which lines overwrite what a backward needs, as the saved values themselves tell.

A program runs with a hook on everything that is saved: autograd then doesn't look at versions, so that no
overwriting ends a backward and each of them is seen, with the line that saved, all lines that wrote, and the
line of the backward.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from .facts import PROGRAM, Run, Spoil


@dataclass(eq=False)
class Kept:
    """A saved value: its version then and now, where it was saved and what has written it since."""

    value: torch.Tensor
    before: torch.Tensor
    version: int
    line: int
    writes: list[int] = field(default_factory=list)

    def changed(self) -> bool:
        return not self.value.is_inference() and self.value._version != self.version + len(self.writes)


class Watcher:
    """Follows the program's lines and asks after each of them which saved value it has written."""

    def __init__(self, run: Run, settle: Callable[[int], None]) -> None:
        self.run = run
        self.settle = settle
        """Told of each line that has run."""
        self.kept: list[Kept] = []
        self.line = 0

    def at(self, line: int) -> None:
        """Another line begins: what has changed until now is the last one's doing."""
        self.look()
        self.line = line

    def left(self, frame: types.FrameType) -> None:
        """A function returns: its caller's line goes on."""
        self.look()
        outer = frame.f_back
        while outer is not None and outer.f_code.co_filename != PROGRAM:
            outer = outer.f_back
        if outer is not None:
            self.line = outer.f_lineno

    def look(self) -> None:
        for one in self.kept:
            while one.changed():
                one.writes.append(self.line)
        self.settle(self.line)

    def pack(self, value: torch.Tensor) -> Kept:
        self.look()
        version = 0 if value.is_inference() else value._version
        one = Kept(value, value.detach().clone(), version, self.line)
        self.kept.append(one)
        return one

    def unpack(self, one: Kept) -> torch.Tensor:
        self.look()
        if one.writes:
            told = not torch.equal(one.before, one.value.detach())
            self.run.spoils.add(Spoil(one.line, tuple(sorted(one.writes)), self.line, told))
        return one.value


@contextmanager
def watching(run: Run, settle: Callable[[int], None]) -> Iterator[Watcher]:
    watcher = Watcher(run, settle)
    hooks: Any = torch.autograd.graph.saved_tensors_hooks(watcher.pack, watcher.unpack)
    with hooks:
        yield watcher
