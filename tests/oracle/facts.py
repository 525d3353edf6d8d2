"""What torch did with a program, as far as the tape could have foretold it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

PROGRAM = "<program>"
"""The file name that programs are compiled under, by which their frames are known."""


@dataclass(frozen=True)
class Failure:
    """An autograd error: its class in the table of claims, its words, the program lines it passed through."""

    key: str
    message: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """A step that used gradients which it should not have, or found none: its line, and the backwards'."""

    line: int
    backwards: tuple[int, ...]


@dataclass(frozen=True)
class Spoil:
    """A saved value that was written before a backward needed it: by which lines."""

    saved: int
    writes: tuple[int, ...]
    backward: int
    told: bool = True
    """Whether a value has changed."""


@dataclass(frozen=True)
class Backward:
    """A backward that succeeded: how much it passed, and a number that changes with the gradients."""

    line: int
    reached: int
    nodes: int
    mark: float
    grad_mode: bool
    value: float = field(default=0.0, compare=False)
    """What the roots add up to."""


@dataclass(frozen=True)
class Held:
    """What an optimizer held: its line, the parameters that want a gradient, and how many never got one."""

    line: int
    parameters: int
    unreached: int
    steps: int


@dataclass
class Run:
    """One execution. `invalid` says why it doesn't count: an error that has nothing to do with autograd."""

    assignment: tuple[bool, ...] = ()
    variant: str = ""
    invalid: str = ""
    failures: list[Failure] = field(default_factory=list)
    passes: Counter[int] = field(default_factory=Counter)
    """How often each line ran."""
    stale: list[Step] = field(default_factory=list)
    repeated: list[Step] = field(default_factory=list)
    """Steps that used a gradient again with nothing, or only zeros, added to it."""
    erased: list[Step] = field(default_factory=list)
    partly_erased: list[Step] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    leaf_roots: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    """Backwards that reached no leaf and did not fail: a view made under no_grad says it requires grad."""
    non_leaf_reads: list[int] = field(default_factory=list)
    rebound: list[int] = field(default_factory=list)
    optimizers: list[Held] = field(default_factory=list)
    trained: int = 0
    """How many leaves that something steps ever got a gradient."""
    spoils: set[Spoil] = field(default_factory=set)
    """Known only of a run that watched what was saved: see `spoils`."""
    erasers: set[tuple[int, int]] = field(default_factory=set)
    """Of such a run: lines that cleared what no step had used, and of which backward."""
    names: dict[str, bool] = field(default_factory=dict)
    """The truth of the flags, by name."""

    @property
    def executed(self) -> set[int]:
        return set(self.passes)

    def failed(self, key: str, lines: set[int]) -> bool:
        return any(f.key == key and lines.intersection(f.lines) for f in self.failures)
