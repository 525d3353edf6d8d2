"""One warm process for two servers: torch is imported once, and two programs run side by side."""

from __future__ import annotations

import os
import select
import traceback
from collections.abc import Callable

from gradfix.trace import guard, processes

Way = tuple[int, int]
"""Where the jobs of a server come in, and where its answers go out."""
TICK = 0.1
Serve = Callable[[int, int], None]


def serve(first: Way, second: Way, work: Serve) -> None:
    """Fork a server for the first way, and one for the second as soon as there is something to do for it.

    This process itself runs no program: it ends when both are over.
    """
    servers = {fork(first, second, work)}
    waiting: Way | None = second
    while servers:
        if waiting is not None and select.select([waiting[0]], [], [], TICK)[0]:
            servers.add(fork(waiting, None, work))
            waiting = None
        pid, _ = os.waitpid(-1, os.WNOHANG if waiting is not None else 0)
        servers.discard(pid)


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
