"""One warm process for two servers: torch is imported once, and two programs run side by side."""

from __future__ import annotations

import contextlib
import os
import select
import traceback
from collections.abc import Callable

from gradfix.trace import guard, processes

Way = tuple[int, int]
"""Where the jobs of a server come in, and where its answers go out."""
Serve = Callable[[int, int], None]


def serve(first: Way, second: Way, work: Serve) -> None:
    """Fork a server for the first way, and one for the second as soon as there is something to do for it.

    This process itself runs no program: it ends when both are over.
    """
    with contextlib.suppress(ChildProcessError, KeyboardInterrupt):
        fork(first, second, work)
        poll = select.poll()
        poll.register(second[0], select.POLLIN)
        if poll.poll()[0][1] & select.POLLIN:  # else nobody is there any more who could send something
            fork(second, None, work)
        while True:
            os.wait()


def fork(own: Way, other: Way | None, work: Serve) -> int:
    """A server on its own way, which ends with this process, and holds nothing of the other way."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        guard.die_with(parent)
        processes.adopt_orphans()
        for fd in other or ():
            os.close(fd)
        try:
            work(*own)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    for fd in own:
        os.close(fd)
    return child
