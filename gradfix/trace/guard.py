"""What holds a program back where it gets no namespaces: Landlock, seccomp and a doorman."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
from typing import Any

from gradfix.trace import landlock, seccomp

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "kfd", "dri")
GRAPHICS = "nvidia"
DEATH_SIGNAL, DROP_BOUND = 1, 24
CAPSET, CAPABILITIES_3 = {"x86_64": 126, "aarch64": 91}, 0x20080522
READS_ALL, SEARCHES_ALL = 1, 2
MOST_CAPABILITIES = 64


def devices() -> list[str]:
    """Those that harm nobody, with the graphics cards."""
    known = [f"/dev/{name}" for name in DEVICES]
    with contextlib.suppress(OSError):
        known += [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(GRAPHICS)]
    return [path for path in known if os.path.exists(path)]


def enter(job: dict[str, Any], room: str) -> bool:
    """From now on nothing but the room can be written, nothing far reached; False: the kernel can't."""
    powerless()
    if job.get("no_landlock") or not landlock.version() or seccomp.machine() is None:
        return False
    os.environ["TMPDIR"] = os.path.join(room, "shadow")
    if not landlock.confine([room, *devices()]):
        return False
    door = int(job.get("door", -1))
    listener = seccomp.install(door >= 0, landlock.version() < 3)
    if door >= 0 and listener > 0:
        with socket.socket(fileno=os.dup(door)) as end:
            socket.send_fds(end, [b"d"], [listener])
        os.close(listener)
    return listener >= 0


def powerless() -> None:
    """Root keeps no power but to read."""
    number = CAPSET.get(os.uname().machine)
    if os.geteuid() or number is None:
        return
    kernel = ctypes.CDLL(None)
    kept = 1 << READS_ALL | 1 << SEARCHES_ALL
    for one in range(MOST_CAPABILITIES):
        if not kept >> one & 1:
            kernel.prctl(DROP_BOUND, one, 0, 0, 0)
    whose = struct.pack("Ii", CAPABILITIES_3, 0)
    kernel.syscall(ctypes.c_long(number), whose, struct.pack("6I", kept, kept, 0, 0, 0, 0))


def die_with(parent: int) -> None:
    """Whoever kills the process that watches this one, ends this one (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
