"""What became of each module of a project, as reports read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gradfix.outcome import Run

State: TypeAlias = Literal["flows", "partly", "none", "broken", "not run"]
"""Gradients arrive wherever they are wanted; at a part; nowhere; a rule is broken; it wasn't run."""
Why: TypeAlias = Literal["unused", "frozen", "cut", "unread"]
"""Why a parameter gets no gradient: not called, told so, a cut on its way, a result that nobody reads."""
MEANT: frozenset[Why] = frozenset({"unused", "frozen"})
"""What says nothing of how healthy a module is."""


@dataclass(frozen=True, slots=True)
class Starved:
    """A parameter that got no gradient in this run."""

    name: str
    why: Why
    detail: str = ""
    """Of a cut: what cuts, and where."""

    @property
    def says(self) -> str:
        """The reason as a user reads it."""
        if self.why == "unused":
            return "no gradient: unused in this run"
        if self.why == "frozen":
            return "no gradient: frozen"
        if self.why == "unread":
            return (
                f"no gradient: its result doesn't reach the loss{f' ({self.detail})' if self.detail else ''}"
            )
        return f"no gradient: {self.detail}"


@dataclass(frozen=True, slots=True)
class Apart:
    """One of several outputs, and what is cut off from it alone: another one may reach that."""

    output: str
    """As it follows what the module returns: `[0]`, `["loss"]`, `.logits`."""
    cut: tuple[Starved, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule of autograd that the run has seen broken."""

    kind: str
    code: str
    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """One module."""

    path: str
    name: str
    line: int
    state: State
    reason: str = ""
    """Why it was not run, or what else is to be said."""
    parameters: int = 0
    """How many it has that are its own or its parts'."""
    reached: int = 0
    """At how many of them a gradient arrived."""
    starved: tuple[Starved, ...] = ()
    apart: tuple[Apart, ...] = ()
    """Of several outputs, those from which a part is cut off that another one reaches."""
    broken: tuple[Broken, ...] = ()
    driver: str = ""
    """The program that ran it."""
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """All modules of a project, and what was found by reading."""

    run: Run
    modules: tuple[Checked, ...]
    seconds: float
    python: str = ""
    broken: str = ""
    """Why nothing could be run at all."""

    @property
    def counts(self) -> Counter[State]:
        """How many modules are in which state."""
        return Counter(one.state for one in self.modules)

    @property
    def exit_code(self) -> int:
        """0: nothing broken; 1: something is; 2: a file can't be read, or nothing could be run."""
        if self.broken or any(True for _ in self.run.failed()):
            return 2
        return int(bool(self.counts["broken"]) or any(True for _ in self.run.findings()))
