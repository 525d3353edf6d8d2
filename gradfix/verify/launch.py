"""Starts the user's interpreter once, and sends it one program after another to run under the recorder."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gradfix.trace.report import BY_CALLS, CONFINED, Recording
from gradfix.verify.ranks import merged
from gradfix.verify.servers import Server, start

START_LIMIT = 120.0
GRACE = 20.0
ALLOWED = "allowed by --verify-allow-writes"
LEAST = 1.0
"""Less time than this is not worth a run."""
ADVICE = "--python names an interpreter that has it; pip install 'gradfix[verify]' puts it beside gradfix"


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: a script, a module, a pytest selection or a program, with its arguments."""

    kind: Literal["script", "module", "pytest", "program"]
    target: str
    args: tuple[str, ...] = ()


def half_of_memory() -> float:
    """What a run may hold unless told otherwise, in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    except (AttributeError, ValueError, OSError):
        return 8e9


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a run may go."""

    max_steps: int = 3
    seconds: float = 60.0
    memory: float = field(default_factory=half_of_memory)
    allow_writes: bool = False
    allow_network: bool = False
    namespaces: bool = True
    landlock: bool = True
    """False: behave as where the kernel gives none."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run."""

    command: Command
    cwd: str
    texts: Mapping[str, bytes] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    echo: bool = False
    hunt: bool = False
    """Look for the first value that is not finite: slow, and only where there is one."""

    def message(self, scratch: str) -> dict[str, Any]:
        """As the server reads it."""
        limits = self.limits
        return {
            "kind": self.command.kind,
            "target": self.command.target,
            "args": list(self.command.args),
            "cwd": self.cwd,
            "roots": roots(self.cwd, self.command, self.texts),
            "texts": {name: data.decode("latin-1") for name, data in self.texts.items()},
            "max_steps": limits.max_steps,
            "time_limit": limits.seconds,
            "memory_limit": limits.memory,
            "allow_writes": limits.allow_writes,
            "allow_network": limits.allow_network or limits.allow_writes,
            "no_namespace": not limits.namespaces,
            "no_landlock": not limits.landlock,
            "scratch": scratch,
            "hunt": self.hunt,
            "echo": {"stdout": 2, "stderr": 2} if self.echo else None,
        }


def roots(cwd: str, command: Command, texts: Mapping[str, bytes]) -> list[str]:
    """The folders that the program may want to write to."""
    found = {cwd, *(os.path.dirname(os.path.abspath(name)) for name in texts)}
    if command.kind == "script":
        found.add(os.path.dirname(os.path.abspath(os.path.join(cwd, command.target))))
    return sorted(found)


NOTEBOOK = (
    "a notebook is not run from here: in it, `%load_ext gradfix` and then `%%gradfix` at the head of a cell "
    "watch what it does; `jupyter nbconvert --to script` makes a program of it"
)


def parse_command(words: Sequence[str]) -> Command:
    """`script.py args`, `-m module args`, `pytest selection`, `torchrun args`; a leading `python` goes."""
    words = list(words)
    if words and os.path.basename(words[0]).startswith("python"):
        words = words[1:]
    if not words:
        raise ValueError("nothing to run")
    if words[0] == "-m" and len(words) > 1:
        if words[1] == "pytest":
            return Command("pytest", "", tuple(words[2:]))
        return Command("module", words[1], tuple(words[2:]))
    if words[0] == "pytest":
        return Command("pytest", "", tuple(words[1:]))
    if words[0].startswith("-"):
        raise ValueError(f"cannot run {words[0]!r}: give a script, -m module or a pytest selection")
    if words[0].endswith(".ipynb"):
        raise ValueError(NOTEBOOK)
    path = words[0].endswith(".py") or os.path.basename(words[0]) != words[0] or os.path.exists(words[0])
    return Command("script" if path else "program", words[0], tuple(words[1:]))


def parse_line(line: str) -> Command:
    """The same from one string (`--verify-cmd`)."""
    return parse_command(shlex.split(line))


class Launcher:
    """A warm interpreter; start it by `with`, and it is gone afterwards."""

    def __init__(self, python: str | None = None, anew: bool = False, seconds: float = math.inf) -> None:
        self.python = python or sys.executable
        self.seconds = seconds
        self.until = math.inf
        """When the time of all runs together is over; it begins with the first."""
        self.anew = anew
        """Start a new process for each run, as where there is no fork."""
        self.wide = False
        """Have the interpreter serve two: to be said before it begins."""
        self.server: Server | None = None
        self.spare: Server | None = None
        """Its second one, until `beside` gives it away."""
        self.ready = False
        """Whether it has said that it can run programs."""
        self.torch = ""
        self.note = ""
        """What is to be said of every run under this torch."""
        self.broken = ""
        self.secluded = False
        """Whether the latest program ran where it could not meet another one: no port, no file is shared."""
        sweep(tempfile.gettempdir())
        prefix = f"gradfix-{os.getpid()}-"
        self.scratch = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server, and whatever it was running with it, for good."""
        self.broken = "closed"
        self._end()
        self.scratch.cleanup()

    def _end(self) -> None:
        server, self.server = self.server, None
        spare, self.spare = self.spare, None
        for one in (spare, server):
            if one is not None:
                if not self.ready:
                    one.process.kill()
                one.close()

    def begin(self) -> None:
        """Start the interpreter, and let it import torch while something else is done."""
        try:
            servers = start(self.python, self.scratch.name, anew=self.anew, wide=self.wide)
        except OSError as error:
            self.broken = f"cannot start {self.python}: {error.strerror}"
            return
        self.server, self.spare = servers[0], servers[1] if self.wide else None

    def beside(self) -> Launcher:
        """Another one, for programs that run at the same time; in this interpreter, if it serves two."""
        other = type(self)(self.python, self.anew, self.seconds)
        other.until = self.until
        if self.spare is not None and self.server is not None:
            other.server, self.spare = self.spare, None
            self.server.shared = other.server.shared = True
            other.ready, other.torch, other.note = self.ready, self.torch, self.note
            other.server.listen()
        return other

    def _start(self) -> None:
        if self.server is None:
            self.begin()
        if self.server is not None:
            self.server.listen()
        said = self.server.heard(START_LIMIT) if self.server is not None else None
        self.ready = said is not None
        if said is None:
            self.broken = self.broken or f"{self.python} did not start torch within {START_LIMIT:.0f} s"
        elif "broken" in said:
            missing = said.get("missing") == "torch"
            self.broken = f"no torch in {self.python}; {ADVICE}" if missing else str(said["broken"])
        else:
            self.torch, self.note = str(said["ready"]), str(said["note"])

    def run(self, job: Job) -> Recording:
        """One program under the recorder; always an answer."""
        if not self.ready:
            self.until = min(self.until, time.monotonic() + self.seconds)
        left = self.until - time.monotonic()
        if left < job.limits.seconds:
            job = replace(job, limits=replace(job.limits, seconds=max(left, 0.0)))
            found = self._run(job) if left > LEAST else recording({"events": [], "how": "spent"})
            return {**found, "how": "spent"} if found["how"] == "time" else found
        return self._run(job)

    def started(self) -> bool:
        """Whether programs can be run; starts the interpreter if it has not been."""
        if not self.ready and not self.broken:
            self._start()
        return not self.broken

    def _run(self, job: Job) -> Recording:
        server = self.server if self.started() else None
        if server is None:
            return recording({"events": [], "how": "no torch", "stderr": self.broken})
        answer = server.ask(job.message(self.scratch.name), job.limits.seconds + GRACE)
        if answer is None:
            server.kill()
            self._end()
            self.ready = self.wide = False
            # Where two share an interpreter, it may have been the other one's program: alone it will be seen.
            if server.shared and not self.broken:
                return self._run(job)
            return recording({"events": [], "how": "broken", "stderr": "the run took its runner down"})
        found = recording(answer)
        open_to_all = job.limits.allow_writes or job.limits.allow_network
        self.secluded = (
            bool(found["torch"]) and not open_to_all and not {CONFINED, BY_CALLS} & {*found["notes"]}
        )
        return {**found, "notes": [*([self.note] if self.note else []), *found["notes"]]}


def sweep(folder: str) -> None:
    """Remove what a gradfix that was killed has left behind."""
    for name in os.listdir(folder):
        found = re.fullmatch(r"gradfix-(\d+)-\w+", name)
        if found is not None and not alive(int(found[1])):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def alive(pid: int) -> bool:
    """Whether a process is there, be it another user's."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def held(answer: Mapping[str, Any]) -> list[str]:
    """What the kernel was told to refuse, each once."""
    return [f"{what} ({ALLOWED})" for what in dict.fromkeys(answer.get("held_back", []))]


def recording(answer: Mapping[str, Any]) -> Recording:
    """The server's answer in the shape that the judge reads."""
    events = list(answer["events"])
    return merged(_of_first(answer, events), answer.get("members", ()), answer.get("stand", ()))


def _of_first(answer: Mapping[str, Any], events: list[Any]) -> Recording:
    """What the process has said that was started for the program."""
    end = next((event for event in events if event["event"] == "end"), None)
    ended = end["how"] if end is not None else "killed"
    return Recording(
        events=[event for event in events if event["event"] != "end"],
        how=answer.get("how") or ended,
        error=end["error"] if end is not None else None,
        reasons=end["reasons"] if end is not None else {},
        lines=end["lines"] if end is not None else {},
        held_back=[*(end["held_back"] if end is not None else []), *held(answer)],
        notes=end["notes"] if end is not None else [],
        blind=end["blind"] if end is not None else {},
        torch=end["torch"] if end is not None else "",
        steps=end["steps"] if end is not None else {},
        apart=[],
        stdout=str(answer.get("stdout", "")),
        stderr=str(answer.get("stderr", "")),
        exit_code=answer.get("exit_code"),
        seconds=float(answer.get("seconds", 0.0)),
    )
