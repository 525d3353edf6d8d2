"""Ends work that takes too long, and loads the tape whole before the forks."""

from __future__ import annotations

import importlib
import pkgutil
import signal
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
    """Raise HungError after so many seconds of the processor, for a busy machine hangs nothing."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise HungError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, patience)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
