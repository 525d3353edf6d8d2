"""When garbage is looked for: after a file's work, since nearly all that is made for it lives until then."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 500_000
"""After how many new objects it is looked for nevertheless, so that no file takes all memory."""


@contextmanager
def seldom() -> Iterator[None]:
    """A piece of work whose garbage is taken away at its end; within another one nothing changes."""
    before = gc.get_threshold()
    if not gc.isenabled() or not 0 < before[0] < SELDOM:
        yield
        return
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.collect(0)
