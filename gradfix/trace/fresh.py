"""Where fork does not exist: a new interpreter for each run, under the same limits, with the same answer."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

from gradfix.trace import guard, processes
from gradfix.trace.server import CHUNK, MOST_EVENTS, STREAMS, TICK, Kept, become

BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")
CRASHED = 0x80000000
"""Windows' exit codes from here on are exceptions in native code."""
PATIENCE = 5.0


class Inbox:
    """The jobs that come in, read beside the one that runs."""

    def __init__(self, jobs: int) -> None:
        self.waiting: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, args=(jobs,), daemon=True).start()

    def _read(self, jobs: int) -> None:
        with os.fdopen(jobs, "rb") as reader:
            for line in iter(reader.readline, b""):
                self.waiting.put(line)
        self.waiting.put(b"")

    def lines(self) -> Iterator[bytes]:
        """One after the other, until the parent is gone."""
        return iter(self.waiting.get, b"")

    def disturbed(self) -> bool:
        """Whether something came although a run is under way: the parent has gone."""
        return not self.waiting.empty()


class Fresh:
    """One program in an interpreter of its own, with its limits."""

    def __init__(self, job: dict[str, Any], inbox: Inbox) -> None:
        self.inbox = inbox
        self.kept = Kept(job)
        self.how = ""
        self.events = os.path.join(job["scratch"], f"events{os.getpid()}-{time.monotonic_ns()}")
        self.started = time.monotonic()
        self.seconds = float(job.get("time_limit", 60))
        self.memory = float(job.get("memory_limit", 8e9))
        self.process = subprocess.Popen(
            [sys.executable, BOOT, "one"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        self.cage = processes.Cage(self.process, self.memory)
        self.readers = [self._reader(name, getattr(self.process, name)) for name in STREAMS]
        self._send({**job, "events": self.events})

    def _reader(self, name: str, pipe: IO[bytes]) -> threading.Thread:
        def read() -> None:
            for data in iter(lambda: os.read(pipe.fileno(), CHUNK), b""):
                self.kept.add(name, data)
            pipe.close()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def _send(self, job: dict[str, Any]) -> None:
        """The job goes in only now that the process can no longer get away."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError), self.process.stdin as pipe:
            pipe.write(json.dumps(job).encode())

    def result(self) -> dict[str, Any]:
        """Watch until the program ends or breaks a limit; then leave nothing running."""
        while not self._ended():
            if not self.how:
                self._limits()
        seconds = time.monotonic() - self.started
        self._clear()
        for thread in self.readers:
            thread.join(PATIENCE)
        self.kept.add("events", self._said())
        with contextlib.suppress(OSError):
            os.remove(self.events)
        code = self.process.returncode
        killed = -code if code < 0 else (code if code >= CRASHED else 0)
        answer = self.kept.answer(self.how, killed, None if killed else code, seconds)
        self.kept.members.clear()
        return answer

    def _said(self) -> bytes:
        """What has come through the channel of the first process so far."""
        with contextlib.suppress(OSError), open(self.events, "rb") as file:
            return file.read(MOST_EVENTS)
        return b""

    def _ended(self) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(TICK)
        return self.process.returncode is not None

    def _limits(self) -> None:
        if time.monotonic() > self.started + self.seconds:
            self._stop("time")
        elif processes.too_big(self.memory):
            self._stop("memory")
        elif self.kept.members.enough(self._said()):
            self._stop("stopped")
        elif self.inbox.disturbed():
            self._clear()
            os._exit(0)

    def _stop(self, how: str) -> None:
        self.how = how
        if os.name == "posix":
            processes.kill(self.process.pid)
        self.cage.end()

    def _clear(self) -> None:
        """Nobody who came with the program stays after it."""
        self.cage.end()
        if os.name == "posix":
            processes.kill(self.process.pid)
            self.process.wait()
            processes.reap()


def one() -> None:
    """The other end: one job from standard input, in this very process. Does not return."""
    guard.die_with(os.getppid())
    job = json.loads(sys.stdin.buffer.read())
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    become(job, os.open(job["events"], flags, 0o600))
