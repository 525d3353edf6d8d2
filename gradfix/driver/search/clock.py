"""No try takes longer than it may: in time of the processor, whoever else wants that."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

AGAIN = 0.2
"""The program may have caught it: in so many seconds it is told again."""


class TooLongError(Exception):
    """A try has taken all the time that there is."""


@contextlib.contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Stop what takes longer."""

    def late(number: int, frame: Any) -> None:
        raise TooLongError(f"it took longer than {seconds:.1f} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
