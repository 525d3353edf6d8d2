"""A warm process: imports torch once, then forks one child for each run and watches over it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

KEPT_OUTPUT = 64_000
MOST_EVENTS = 64_000_000
CHUNK = 1 << 16
TICK = 0.1
PR_SET_CHILD_SUBREAPER = 36


def say(value: dict[str, Any], out: int) -> None:
    """One JSON line to the parent."""
    data = (json.dumps(value) + "\n").encode()
    while data:
        data = data[os.write(out, data) :]


def serve() -> int:
    """Answer jobs, one line of JSON each, until standard input ends."""
    jobs, out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    adopt_orphans()
    try:
        import torch

        from gradfix.trace.session import warm

        warm()
        say({"ready": str(torch.__version__), "python": sys.version.split()[0]}, out)
    except ImportError as error:
        say({"broken": f"{type(error).__name__}: {error}", "missing": getattr(error, "name", "")}, out)
        return 2
    reader = os.fdopen(jobs, "rb", buffering=0)
    for line in iter(reader.readline, b""):
        say(Run(json.loads(line), reader.fileno(), out).result(), out)
    return 0


def adopt_orphans() -> None:
    """Grandchildren whose parent has gone become ours, so that none gets away."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Run:
    """One forked program, with its limits."""

    def __init__(self, job: dict[str, Any], jobs: int, out: int) -> None:
        self.job = job
        self.jobs = jobs
        self.kept: dict[str, bytearray] = {
            "stdout": bytearray(),
            "stderr": bytearray(),
            "events": bytearray(),
        }
        self.pipes: dict[int, str] = {}
        self.how = ""
        self.status: int | None = None
        self.started = time.monotonic()
        self.child = self._fork(out)

    def _fork(self, out: int) -> int:
        pairs = {name: os.pipe() for name in self.kept}
        child = os.fork()
        if child == 0:
            for fd in (self.jobs, out, *(pair[0] for pair in pairs.values())):
                os.close(fd)
            become(self.job, {name: pair[1] for name, pair in pairs.items()})
        for name, (reading, writing) in pairs.items():
            os.close(writing)
            self.pipes[reading] = name
        return child

    def result(self) -> dict[str, Any]:
        """Watch until the program ends or breaks a limit; then leave nothing running."""
        deadline = self.started + float(self.job.get("time_limit", 60))
        while self.pipes:
            readable, _, _ = select.select([*self.pipes], [], [], TICK)
            for fd in readable:
                self._read(fd)
            if self._ended() and not readable:
                break
            if self.status is None and not self.how:
                self._limits(deadline)
        seconds = time.monotonic() - self.started
        self._kill_all()
        for fd in list(self.pipes):
            os.close(fd)
        return self._answer(seconds)

    def _read(self, fd: int) -> None:
        data = os.read(fd, CHUNK)
        name = self.pipes[fd]
        if not data:
            os.close(fd)
            del self.pipes[fd]
            return
        kept = self.kept[name]
        kept += data
        if name == "events":
            del kept[MOST_EVENTS:]
            return
        if self.job.get("echo"):
            with contextlib.suppress(OSError):
                os.write(int(self.job["echo"][name]), data)
        del kept[:-KEPT_OUTPUT]

    def _ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def _limits(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            self._stop("time")
        elif self._too_big(float(self.job.get("memory_limit", 8e9))):
            self._stop("memory")
        elif select.select([self.jobs], [], [], 0)[0]:
            self._kill_all()
            os._exit(0)

    def _too_big(self, most: float) -> bool:
        """Forks share pages: a first, cheap sum counts them each time, the second one fairly."""
        return resident(os.getpid()) > most and proportional(os.getpid()) > most

    def _stop(self, how: str) -> None:
        self.how = how
        os.kill(self.child, signal.SIGKILL)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _kill_all(self) -> None:
        """Kill and reap until no child is left, adopted ones included."""
        for _ in range(200):
            for pid in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if pid == self.child:
                self.status = status

    def _answer(self, seconds: float) -> dict[str, Any]:
        lines = bytes(self.kept["events"]).split(b"\n")
        status = self.status if self.status is not None else 0
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return {
            "events": [json.loads(line) for line in lines[:-1] if line],
            "how": self.how or ("signal" if killed else ""),
            "signal": killed,
            "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "stdout": self.kept["stdout"].decode(errors="replace"),
            "stderr": self.kept["stderr"].decode(errors="replace"),
            "seconds": seconds,
        }


def become(job: dict[str, Any], pipes: dict[str, int]) -> None:
    """In the child: take the streams, drop what is the server's, run the program. Does not return."""
    code = 70
    try:
        os.setsid()
        os.dup2(pipes["stdout"], 1)
        os.dup2(pipes["stderr"], 2)
        os.close(pipes["stdout"])
        os.close(pipes["stderr"])
        from gradfix.trace.program import run

        code = run(job, pipes["events"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def parents() -> dict[int, int]:
    """Every process and its parent, where /proc tells."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as stat:
                found[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
    return found


def descendants(root: int) -> list[int]:
    """The children of a process, and theirs."""
    table = parents()
    found, queue = [], [root]
    for pid in queue:
        children = [child for child, parent in table.items() if parent == pid]
        found.extend(children)
        queue.extend(children)
    return found


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
