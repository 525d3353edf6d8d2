"""One large piece of the interpreter's stack for work that calls deeply.

CPython keeps the frames of running functions in pieces of 16 KiB, which it maps and unmaps as calls cross the
border of one. The tape crosses it for every expression of a program: a tenth of its time was spent there. A
frame that says it needs much gets a piece of its own, and what is called from it has the rest of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

SLOTS = 70_000
"""Of eight bytes: a little more than half a MiB, so that the piece is a whole one."""

P = ParamSpec("P")
R = TypeVar("R")


def roomy(work: Callable[P, R]) -> Callable[P, R]:
    """The same work, with room for what it calls."""

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return work(*args, **kwargs)

    run.__code__ = run.__code__.replace(co_stacksize=SLOTS)
    return wraps(work)(run)
