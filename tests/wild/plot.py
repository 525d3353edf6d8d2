"""A way to train, as pieces that a house puts together."""

from __future__ import annotations

from dataclasses import dataclass, field

from .world import Lines, World


@dataclass
class Stage:
    """Lines of a step that may live in a function of their own."""

    name: str
    lines: Lines
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()


@dataclass
class Plot:
    """What is made, what happens with each batch, and what follows an epoch."""

    setup: Lines
    stages: list[Stage]
    width: int = 4
    out: int = 2
    kind: str = "rows"
    begin: Lines = field(default_factory=list)
    after: Lines = field(default_factory=list)
    end: Lines = field(default_factory=list)
    idle: bool = False
    """Whether gradients are made for nobody, as where it is only measured how long that takes."""
    whole: bool = False
    """Whether the stages share more than they take and give, so that none can live by itself."""


def sizes(world: World) -> tuple[int, int]:
    return world.dice.randint(3, 6), world.dice.randint(2, 4)
