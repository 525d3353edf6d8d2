"""A warm process: imports torch once, then forks one child for each run and watches over it."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import secrets
import select
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from gradfix.trace import branch, compiler, guard, processes
from gradfix.trace.doorman import Doorman
from gradfix.trace.members import Members, lines
from gradfix.trace.report import BOOKS

KEPT_OUTPUT = 64_000
MOST_EVENTS = 64_000_000
CHUNK = 1 << 16
TICK = 0.1
ALWAYS = ("numpy.random", "encodings.unicode_escape", "torch.profiler._cupti_monitor")
"""What drawing numbers, reading a list of mounts and the first backward import."""
STREAMS = ("stdout", "stderr")
ENCODER = json.JSONEncoder(check_circular=False)
"""Nothing that is said has itself in it."""
SPINS = {"OPENBLAS_THREAD_TIMEOUT": "16", "GOMP_SPINCOUNT": "10000"}
"""How long threads that wait turn in circles before they sleep: others want the processor."""


def say(value: dict[str, Any], out: int, token: str = "") -> None:
    """One JSON line to the parent."""
    data = f"{token}{ENCODER.encode(value)}\n".encode()
    while data:
        data = data[os.write(out, data) :]


def serve(anew: bool, second: Sequence[int] = ()) -> int:
    """Answer jobs, one line of JSON each, until standard input ends; `anew`: each in a new process.

    `second`: where a second server is to hear and to answer.
    """
    jobs, out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    processes.adopt_orphans()
    try:
        with briefly():
            import torch

            if not anew:
                warm()
        say(ready(str(torch.__version__)), out)
    except ImportError as error:
        say({"broken": f"{type(error).__name__}: {error}", "missing": getattr(error, "name", "")}, out)
        return 2
    if second and not anew:
        branch.serve((jobs, out), (second[0], second[1]), serve_forked)
    else:
        (serve_anew if anew else serve_forked)(jobs, out)
    os._exit(0)  # nothing is left that would have to be put away piece by piece


@contextlib.contextmanager
def briefly() -> Iterator[None]:
    """Around imports: next to nothing of them is garbage, and the threads that they start go to sleep."""
    ours = {name: value for name, value in SPINS.items() if name not in os.environ}
    os.environ.update(ours)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # a collection in a fork would have to copy all that it looks at
        gc.enable()
        for name in ours:
            os.environ.pop(name, None)


def warm() -> None:
    """Import what every program is about to import, and nothing that takes longer than it is used."""
    from gradfix.trace import places, program

    for name in ALWAYS:
        if sys.modules.get(name.partition(".")[0]) is not None:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    places.foreign_folders()
    compiler.postpone()
    program.ahead()


def ready(torch: str) -> dict[str, Any]:
    """What the parent is told of this torch: programs can run, or why nothing seen here can be trusted."""
    try:
        from gradfix.trace.selfcheck import apart

        note, failure = apart()
    except Exception as error:
        note, failure = (
            "",
            f"the recorder does not work under torch {torch} ({type(error).__name__}: {error})",
        )
    if failure:
        return {"broken": failure, "missing": ""}
    return {"ready": torch, "python": sys.version.split()[0], "note": note}


def serve_forked(jobs: int, out: int) -> None:
    """A fork of this process for each job."""
    with os.fdopen(jobs, "rb") as reader:
        for line in iter(reader.readline, b""):
            found = Run(json.loads(line), jobs, out).result()
            say(found, out)
            if any(event.get("compiler") for event in found["events"]):
                compiler.real()


def serve_anew(jobs: int, out: int) -> None:
    """A new interpreter for each job, where there is no fork."""
    from gradfix.trace.fresh import Fresh, Inbox

    inbox = Inbox(jobs)
    for line in inbox.lines():
        say(Fresh(json.loads(line), inbox).result(), out)


class Kept:
    """What a run has written: the end of its output, the beginning of its events."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.echo = job.get("echo") or {}
        self.token = job["token"] = secrets.token_hex()
        """By what the recorder's own events are told from what the program writes into every open file."""
        self.members = Members(job)
        self.bytes = {name: bytearray() for name in (*STREAMS, "events")}
        self.held: list[str] = []
        """What the kernel was told to refuse."""

    def add(self, name: str, data: bytes) -> None:
        """Keep what matters of one more piece."""
        kept = self.bytes[name]
        kept += data
        if name == "events":
            del kept[MOST_EVENTS:]
            return
        if name in self.echo:
            with contextlib.suppress(OSError):
                os.write(int(self.echo[name]), data)
        del kept[:-KEPT_OUTPUT]

    def answer(self, how: str, killed: int, exit_code: int | None, seconds: float) -> dict[str, Any]:
        """The whole run, as the parent reads it."""
        events, garbled = lines(bytes(self.bytes["events"]), self.token)
        members = self.members.all()
        garbled = garbled or any(member.garbled for member in members)
        return {
            "events": events,
            "members": [member.events for member in members],
            "stand": [member.stands() if how == "time" else "" for member in members],
            "held_back": self.held,
            "how": how or ("signal" if killed else "garbled" if garbled else ""),
            "signal": killed,
            "exit_code": exit_code,
            "stdout": self.bytes["stdout"].decode(errors="replace"),
            "stderr": self.bytes["stderr"].decode(errors="replace"),
            "seconds": seconds,
        }


class Run:
    """One forked program, with its limits."""

    def __init__(self, job: dict[str, Any], jobs: int, out: int) -> None:
        self.job = job
        self.jobs = jobs
        self.kept = Kept(job)
        self.pipes: dict[int, str] = {}
        self.how = ""
        self.status: int | None = None
        self.started = time.monotonic()
        near, far = socket.socketpair()
        self.doorman: Doorman | None = Doorman(near, job["scratch"], self.kept.held.append)
        self.job["door"] = far.detach()
        self.child = self._fork(out, near)
        os.close(self.job["door"])

    def _fork(self, out: int, near: socket.socket) -> int:
        pairs = {name: os.pipe() for name in self.kept.bytes}
        server = os.getpid()
        child = os.fork()
        if child == 0:
            guard.die_with(server)
            for fd in (self.jobs, out, near.detach(), *(pair[0] for pair in pairs.values())):
                os.close(fd)
            os.setsid()
            for fd, name in enumerate(STREAMS, 1):
                os.dup2(pairs[name][1], fd)
                os.close(pairs[name][1])
            become(self.job, pairs["events"][1])
        for name, (reading, writing) in pairs.items():
            os.close(writing)
            self.pipes[reading] = name
        return child

    def result(self) -> dict[str, Any]:
        """Watch until the program ends or breaks a limit; then leave nothing running."""
        deadline = self.started + float(self.job.get("time_limit", 60))
        try:
            return self._watched(deadline)
        finally:
            self.kept.members.clear()

    def _watched(self, deadline: float) -> dict[str, Any]:
        checked = self.started
        while self.pipes:
            waiting: list[int | Doorman] = [*self.pipes, *([self.doorman] if self.doorman else [])]
            readable, _, _ = select.select(waiting, [], [], TICK)
            for one in readable:
                self._hear(one)
            if self._ended() and not readable:
                break
            if self.status is None and not self.how and time.monotonic() > checked + TICK:
                self._limits(deadline)
                checked = time.monotonic()
        seconds = time.monotonic() - self.started
        processes.kill(self.child)
        self.status = processes.reap().get(self.child, self.status)
        for fd in list(self.pipes):
            os.close(fd)
        if self.doorman is not None:
            self.doorman.close()
        status = self.status if self.status is not None else 0
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        return self.kept.answer(self.how, killed, code, seconds)

    def _hear(self, one: int | Doorman) -> None:
        if isinstance(one, int):
            self._read(one)
        elif not one.attend():
            one.close()
            self.doorman = None

    def _read(self, fd: int) -> None:
        data = os.read(fd, CHUNK)
        if data:
            self.kept.add(self.pipes[fd], data)
        else:
            os.close(fd)
            del self.pipes[fd]

    def _ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def _limits(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            self._stop("time")
        elif processes.too_big(float(self.job.get("memory_limit", 8e9))):
            self._stop("memory")
        elif self.kept.members.enough(self.kept.bytes["events"]):
            self._stop("stopped")
        elif select.select([self.jobs], [], [], 0)[0]:
            processes.reap()
            os._exit(0)

    def _stop(self, how: str) -> None:
        self.how = how
        processes.kill(self.child)


def failed(events: int, error: BaseException, token: str) -> None:
    """The recorder itself could not begin: nothing of that is the program's."""
    torch = str(getattr(sys.modules.get("torch"), "__version__", ""))
    blind = {BOOKS: f"{type(error).__name__}: {error}"[:300]}
    end: dict[str, Any] = {
        "event": "end",
        "how": "error",
        "error": None,
        "reasons": {},
        "lines": {},
        "held_back": [],
    }
    with contextlib.suppress(OSError):
        say({**end, "notes": [], "blind": blind, "torch": torch, "steps": {}}, events, token)


def become(job: dict[str, Any], events: int) -> None:
    """In the process that is the program's own: run it. Does not return."""
    code = 70
    try:
        from gradfix.trace.program import run

        code = run(job, events)
    except BaseException as error:
        failed(events, error, job["token"])
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
