"""Where the grammar's choices come from."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Chooser:
    """Every choice of the grammar is one number below a bound."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred; a shrinking Hypothesis goes to the common side."""
        return self.below(100) >= 100 - percent

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        point = self.below(sum(weight for weight, _ in options))
        for weight, option in options:
            point -= weight
            if point < 0:
                return option
        raise AssertionError("weights are positive")


def seeded(seed: int) -> Chooser:
    rng = random.Random(seed)
    return Chooser(lambda bound: int(rng.random() * bound))
