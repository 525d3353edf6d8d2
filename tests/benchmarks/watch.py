"""Ends work that takes too long, and loads the tape whole before the forks."""

from __future__ import annotations

import importlib
import pkgutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import gradfix.tape

for _module in pkgutil.iter_modules(gradfix.tape.__path__):
    importlib.import_module(f"gradfix.tape.{_module.name}")


class HungError(BaseException):
    """Work ran out of time. Not an Exception, so that no handler inside the work takes it for its own."""


@contextmanager
def watchdog(patience: float) -> Iterator[None]:
    """Raise HungError after so many seconds of the processor, for on a busy machine nothing is hung.

    The clock that rings is the wall's: the processor's own timers make `process_time` coarse.
    """
    start = time.process_time()

    def ring(number: int, frame: FrameType | None) -> None:
        left = patience - (time.process_time() - start)
        if left <= 0:
            raise HungError
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, patience)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
