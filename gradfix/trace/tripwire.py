"""An audit hook that raises where a program is about to change or reach what is not its own."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

from gradfix.trace import children

HELD: list[str] = []
"""What was held back."""
ALLOW = "--verify-allow-writes"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.remove": ("remove", 1), "os.rmdir": ("remove", 1), "os.truncate": ("truncate", 1),
    "os.chmod": ("chmod", 1), "os.chown": ("chown", 1), "os.utime": ("utime", 1),
    "os.setxattr": ("setxattr", 1), "os.removexattr": ("removexattr", 1), "os.chflags": ("chflags", 1),
    "os.rename": ("rename", 2), "os.link": ("link", 2), "os.symlink": ("link", 2),
    "shutil.rmtree": ("remove", 1), "shutil.move": ("move", 2), "sqlite3.connect": ("sqlite", 1),
}  # fmt: skip
"""Event -> what it does, and how many paths it names first."""
STARTS = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.startfile"}
SIGNALS = {"os.kill", "os.killpg"}
SENDS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
NATIVE = {
    "open", "open64", "openat", "creat", "fopen", "fopen64", "freopen", "unlink", "unlinkat", "rename",
    "renameat", "remove", "rmdir", "mkdir", "mkdirat", "mknod", "mkfifo", "truncate", "ftruncate",
    "symlink", "link", "chmod", "chown", "setxattr", "system", "popen", "execv", "execve", "execvp",
    "posix_spawn", "fork", "vfork", "connect", "sendto", "sendmsg", "syscall", "mount", "umount",
    "kill", "reboot",
}  # fmt: skip
"""What is looked up in a library of C only to get past everybody."""


def hook(free: Callable[[Any], bool], confined: bool) -> Callable[[str, tuple[Any, ...]], None]:
    """The hook; `confined`: the kernel watches processes that are started, and whatever C does."""
    watcher = os.getppid()

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if writes(*args) and not free(args[0]):
                stop(f"write to {args[0]}")
        elif event in CHANGES:
            does, count = CHANGES[event]
            if not owned(args[:count], free):
                stop(f"{does} {args[0]}")
        elif event in SENDS:
            if far(args[0], args[1]):
                stop(f"connection to {args[1][0]}")
        elif event in SIGNALS:
            if args[0] == watcher:
                stop(f"signal to process {args[0]}")
        elif not confined:
            outside(event, args)

    return watch


def writes(path: Any = None, mode: Any = None, flags: Any = 0) -> bool:
    """Whether a file is opened for more than reading."""
    return path is not None and isinstance(flags, int) and bool(flags & WRITES)


def outside(event: str, args: tuple[Any, ...]) -> None:
    """What only the kernel could look into."""
    if event in STARTS and not (event == "subprocess.Popen" and children.recorded(args[0], args[1], args[3])):
        stop(f"start {args[0] if args else ''}")
    if event == "ctypes.dlsym" and args[1] in NATIVE:
        stop(f"call of {args[1]} in C")


def owned(paths: tuple[Any, ...], free: Callable[[Any], bool]) -> bool:
    """Whether all of some paths are the run's own."""
    with contextlib.suppress(TypeError, ValueError):
        return all(free(f"/proc/self/fd/{one}" if isinstance(one, int) else one) for one in paths)
    return False


def far(one: Any, address: Any) -> bool:
    """Whether a socket would leave this machine."""
    if address is None or one.family == getattr(socket, "AF_UNIX", None):
        return False
    return not str(address[0]).startswith(("127.", "::1", "localhost"))


def stop(what: str) -> None:
    """Hold back, and say which option allows it."""
    HELD.append(f"{what} (allowed by {ALLOW})")
    raise PermissionError(f"gradfix holds this back during verification: {what}")
