"""What torch did in one run of a program, as plain data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

Chain = tuple[int, ...]
"""The program's lines on the stack, innermost first."""


Failure = tuple[str, str, Chain]
"""The name of an exception, its words, and where it was raised."""


@dataclass
class Backward:
    """A backward pass: where, from what value, and what it did to the leaves of optimizers."""

    lines: Chain
    root: float
    reached: tuple[str, ...] = ()
    """The leaves that a gradient arrived at."""
    sums: tuple[float, ...] = ()
    """A number for each of their gradients."""
    stepped: bool = False
    """Whether a step has used any of it."""
    read: bool = False
    """Whether the program has read any of it."""
    erased: tuple[Chain, ...] = ()
    """Where some of it was cleared before a step had used it."""


@dataclass
class Group:
    """An optimizer: where it was made, and what came of its leaves."""

    lines: Chain
    leaves: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    """Those that want a gradient and never got one that a step of this optimizer used."""
    unchanged: tuple[str, ...] = ()
    steps: int = 0


@dataclass
class Facts:
    """One run."""

    error: Failure | None = None
    caught: list[Failure] = field(default_factory=list)
    """What was raised and had a handler in the program."""
    lines: tuple[int, ...] = ()
    """All lines that ran."""
    backwards: list[Backward] = field(default_factory=list)
    asked: list[tuple[float, ...]] = field(default_factory=list)
    """A number for each gradient that `torch.autograd.grad` has handed out, call by call."""
    groups: list[Group] = field(default_factory=list)
    stale: list[tuple[Chain, Chain]] = field(default_factory=list)
    """Steps that used a gradient to which one was added that a step had used: backward, step."""
    starved: list[tuple[Chain, Chain]] = field(default_factory=list)
    """Steps that found nothing where a gradient had been cleared that none had used: clear, step."""
    by_hand: bool = False
    """Whether a leaf has changed after its gradient was read: that may have been a step, or not."""
    unowned: int = 0
    """How many parameters got gradients that nothing ever used to change them."""
    reads: tuple[int, ...] = ()
    """Lines that read a `.grad` that was None."""

    @property
    def failures(self) -> list[Failure]:
        return [*([self.error] if self.error else []), *self.caught]

    @property
    def trained(self) -> bool:
        """Whether there was a step; where nobody is there to make one, whether anything was to learn by hand."""
        if not self.groups:
            return bool(self.backwards or self.asked)
        return any(group.steps for group in self.groups)

    @property
    def wasted(self) -> list[Backward]:
        """Backward passes that filled gradients which nobody used or read before they were cleared."""
        return [b for b in self.backwards if b.reached and b.erased and not b.stepped and not b.read]


def dumped(runs: list[Facts]) -> str:
    return json.dumps([asdict(run) for run in runs])


def loaded(text: str) -> list[Facts]:
    return [_facts(each) for each in json.loads(text)]


def _failure(raw: list[Any]) -> Failure:
    return raw[0], raw[1], tuple(raw[2])


def _facts(raw: dict[str, Any]) -> Facts:
    error = raw["error"]
    return Facts(
        error=_failure(error) if error else None,
        caught=[_failure(each) for each in raw["caught"]],
        lines=tuple(raw["lines"]),
        backwards=[
            Backward(
                tuple(b["lines"]),
                b["root"],
                tuple(b["reached"]),
                tuple(b["sums"]),
                b["stepped"],
                b["read"],
                tuple(tuple(chain) for chain in b["erased"]),
            )
            for b in raw["backwards"]
        ],
        asked=[tuple(call) for call in raw["asked"]],
        groups=[
            Group(
                tuple(g["lines"]),
                tuple(g["leaves"]),
                tuple(g["unreached"]),
                tuple(g["unchanged"]),
                g["steps"],
            )
            for g in raw["groups"]
        ],
        stale=[(tuple(a), tuple(b)) for a, b in raw["stale"]],
        by_hand=raw["by_hand"],
        starved=[(tuple(a), tuple(b)) for a, b in raw["starved"]],
        unowned=raw["unowned"],
        reads=tuple(raw["reads"]),
    )
