"""How far a long run has come, so that it can be cut and continued."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path

from .campaign import Tally


@dataclass(slots=True)
class Progress:
    """Up to which seed programs were taken, what came of them, and how long it took."""

    seed: int
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)

    @staticmethod
    def of(state: Path | None, seed: int) -> Progress:
        """What an earlier run left in its file, or a beginning."""
        if state is None or not state.exists():
            return Progress(seed)
        progress = pickle.loads(state.read_bytes())
        assert isinstance(progress, Progress)
        return progress

    def write(self, state: Path | None) -> None:
        """The whole of it at once, whenever the run may be cut."""
        if state is not None:
            beside = state.with_suffix(".new")
            beside.write_bytes(pickle.dumps(self))
            beside.replace(state)
