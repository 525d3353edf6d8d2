"""How long a program may run before it counts as hung."""

from __future__ import annotations

import signal
from types import FrameType

PATIENCE = 10.0
"""Seconds of work on one program before it counts as hung."""


class HungError(BaseException):
    """A program took longer than the patience for it. No handler inside takes it for its own."""


class patience:  # noqa: N801
    """Raises HungError when its block takes too long."""

    def __init__(self, seconds: float = PATIENCE) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGVTALRM, self.ring)
        # again and again: where nobody can be told, as in a destructor, the first one is lost
        signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds, 1.0)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def ring(self, number: int, frame: FrameType | None) -> None:
        raise HungError(f"over {self.seconds} s")
