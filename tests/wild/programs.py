"""A seed's program: its text, and the words on the command line that it can be run with."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from . import houses
from .plots import PLOTS
from .world import Dice, World

COMMON = ("import torch", "from torch import nn", "import torch.nn.functional as F")


@dataclass(frozen=True)
class Program:
    """A text and all the flags and arms that it asks for."""

    source: str
    flags: tuple[str, ...]
    arms: int
    plot: str
    idle: bool = False

    def calls(self, dice: Dice, many: int) -> list[list[str]]:
        """Command lines: nothing, everything, and some by chance."""
        if not self.flags and not self.arms:
            return [[]]
        found = [self._call([], 0), self._call(list(self.flags), 1)]
        for _ in range(many - 2):
            chosen = [flag for flag in self.flags if dice.chance(0.5)]
            found.append(self._call(chosen, dice.randrange(max(self.arms, 1))))
        return found

    def _call(self, flags: list[str], arm: int) -> list[str]:
        words = [f"--{flag}" for flag in flags]
        return [*words, f"--mode=m{min(arm, self.arms - 1)}"] if self.arms else words


def written(seed: int) -> Program:
    """The healthy program of a seed."""
    dice = Dice(seed)
    world = World(dice)
    way = dice.choice(PLOTS)
    plot = way(world)
    lines = houses.program(world, plot)
    helpers = [line for body in world.helpers.values() for line in [*body, ""]]
    settings = world.settings()
    head = [*sorted(world.imports), *COMMON, "", f"torch.manual_seed({seed % 1000})", *settings, ""]
    source = "\n".join([*head, *helpers, *lines])
    return Program(_unparsed(source), tuple(world.flags), world.arms, way.__name__, plot.idle)


def _unparsed(source: str) -> str:
    """The text with one layout, so that a planted bug is the only thing that differs."""
    return ast.unparse(ast.parse(source)) + "\n"
