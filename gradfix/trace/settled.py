"""A loop that goes on and on: what looks the same as ever is told of now and then."""

from __future__ import annotations

import math
from typing import Any

OFTEN = 16
"""So many times in a row the same is told."""
EVERY = 16
"""Then each of so many."""


class Settled:
    """What was told of last at each place, and how often the same has happened there since."""

    def __init__(self) -> None:
        self.often: float = OFTEN
        self.seen: dict[Any, tuple[Any, int]] = {}

    def never(self) -> None:
        """Everything is told, for what is recorded will be compared."""
        self.often = math.inf

    def skips(self, key: Any, shape: Any) -> bool:
        """Whether this may be left out: it is as the times before."""
        last, times = self.seen.get(key, (None, 0))
        times = times + 1 if last == shape else 0
        self.seen[key] = (shape, times)
        return times >= self.often and times % EVERY != 0
