"""The processes of a run: which there are, what they hold, and how none of them stays behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
KILL_ON_CLOSE, LIMIT_MEMORY, EXTENDED_LIMITS = 0x2000, 0x200, 9
MOST_ROUNDS = 200
KILLED = 0.01
"""How many seconds one that was killed is given to be gone."""
_ctypes: Any = ctypes
"""Half of it exists on Windows only."""


def adopt_orphans() -> None:
    """Grandchildren whose parent has gone become ours, so that none gets away (Linux)."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents() -> dict[int, int]:
    """Every process and its parent, where /proc or ps tells."""
    if not os.path.isdir("/proc/self"):
        return parents_by_ps()
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as stat:
                found[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
    return found


def parents_by_ps() -> dict[int, int]:
    """The same from the one tool that every Unix has."""
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        said = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, timeout=5, check=True)
        pairs = (line.split() for line in said.stdout.splitlines())
        return {int(pid): int(parent) for pid, parent in pairs}
    return {}


def descendants(root: int) -> list[int]:
    """The children of a process, and theirs."""
    listed = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
    table = {} if listed else parents()
    queue = [root]
    for pid in queue:
        queue += children(pid) if listed else [child for child, parent in table.items() if parent == pid]
    return queue[1:]


def children(pid: int) -> list[int]:
    """Of one process, where the kernel lists them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def too_big(most: float) -> bool:
    """Forks share pages: a first, cheap sum counts them each time, the second one fairly."""
    return resident(os.getpid()) > most and proportional(os.getpid()) > most


def resident(root: int) -> int:
    """The memory that the descendants hold, in bytes."""
    total = 0
    for pid in descendants(root):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as statm:
            fields = statm.read().split()
            total += (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    return total


def proportional(root: int) -> int:
    """The same, with shared pages divided among those who share them."""
    total = 0
    for pid in descendants(root):
        with (
            contextlib.suppress(OSError, ValueError, IndexError),
            open(f"/proc/{pid}/smaps_rollup") as rollup,
        ):
            total += next(int(line.split()[1]) << 10 for line in rollup if line.startswith("Pss:"))
    return total


def left_by(mark: str) -> list[int]:
    """The processes that were started, or come from one that was, with a mark in their environment."""
    found = []
    for pid in parents():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
            if mark.encode() in environment.read().split(b"\0"):
                found.append(pid)
    return found


def end_left_by(mark: str) -> None:
    """Kill them until none is there: the kernel takes its time, and they may have begun others."""
    for _ in range(MOST_ROUNDS):
        found = left_by(mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(KILLED)


def kill(child: int) -> None:
    """End a run with its process group, and whoever has left the group."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    for pid in (child, *descendants(os.getpid())):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap() -> dict[int, int]:
    """Kill and wait until no child is left, adopted ones included; how each has ended."""
    ended: dict[int, int] = {}
    for _ in range(MOST_ROUNDS):
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        ended[pid] = status
    return ended


class Cage:
    """Windows' way to hold a process and its children: a job object that takes them along when it ends."""

    def __init__(self, process: Any, memory: float) -> None:
        self.kernel: Any = None
        if os.name != "nt":
            return
        self.kernel = _ctypes.WinDLL("kernel32", use_last_error=True)
        self.kernel.CreateJobObjectW.restype = ctypes.c_void_p
        self.job = ctypes.c_void_p(self.kernel.CreateJobObjectW(None, None))
        limits = ExtendedLimits()
        limits.flags, limits.job_memory = KILL_ON_CLOSE | LIMIT_MEMORY, int(memory)
        self.kernel.SetInformationJobObject(
            self.job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        self.kernel.AssignProcessToJobObject(self.job, ctypes.c_void_p(int(process._handle)))

    def end(self) -> None:
        """Terminate whatever is still inside."""
        if self.kernel is not None:
            self.kernel.TerminateJobObject(self.job, 1)
            self.kernel.CloseHandle(self.job)
            self.kernel = None


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )
