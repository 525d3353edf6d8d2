"""Ends work that takes too long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class HungError(BaseException):
    """Work ran out of time. Not an Exception, so that no handler inside the work takes it for its own."""


@contextmanager
def watchdog(patience: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HungError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, patience)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
