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

    def __enter__(self) -> None:
        signal.signal(signal.SIGVTALRM, self.ring)
        signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    @staticmethod
    def ring(number: int, frame: FrameType | None) -> None:
        raise HungError(f"over {PATIENCE} s")
