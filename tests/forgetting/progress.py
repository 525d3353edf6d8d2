"""How far a long run has come, so that it can be cut and continued."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path

from .campaign import Tally


@dataclass(slots=True)
class Progress:
    """How many texts were taken, what came of them, and how long it took."""

    texts: int = 0
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)

    @staticmethod
    def of(state: Path | None) -> Progress:
        """What an earlier run left in its file, or a beginning."""
        if state is None or not state.exists():
            return Progress()
        progress = pickle.loads(state.read_bytes())
        assert isinstance(progress, Progress)
        return progress

    def add(self, one: Tally) -> None:
        self.texts += 1
        self.tally.add(one)

    def write(self, state: Path) -> None:
        """The whole of it at once, whenever the run may be cut."""
        beside = state.with_suffix(".new")
        beside.write_bytes(pickle.dumps(self))
        beside.replace(state)
