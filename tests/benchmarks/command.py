"""What users run: the command over a folder, imports followed, in one process of its own.

Its start-up is timed as well, over a small file for which all of the tape is imported, and taken off. What is
timed has its modules compiled, as an installed gradfix has.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

COMMAND = (sys.executable, "-m", "gradfix", "-j1")
WITHOUT = (*COMMAND, "--no-cache")
SMALL = "import torch\nx = torch.ones(3)\n"
FINDING = """import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y += 1
y.sum().backward()
"""
RUFF = (sys.executable, "-m", "ruff", "check", "--quiet", "--isolated", "--no-cache")
"""With what Python takes to hand over to it."""
ENDS = (0, 1, 2)
"""2: some file is no Python."""
LAUNCH = """
import json, os, sys
null = [(os.POSIX_SPAWN_OPEN, at, os.devnull, os.O_RDWR, 0) for at in range(3)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, used = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
"""What starts the command is smaller than that: the peak of a process counts from that of who started it."""


@dataclass(frozen=True)
class Whole:
    """Processor seconds (user and system) of a call without its start-up, and its peak of memory in MiB."""

    seconds: float
    startup: float
    peak: float


def whole(folder: Path, repeat: int) -> Whole:
    """The command over a folder, the best of some tries."""
    with tempfile.TemporaryDirectory() as nothing:
        (Path(nothing) / "small.py").write_text(SMALL)
        startup = min(used([*WITHOUT, nothing])[0] for _ in range(repeat))
    tries = [used([*WITHOUT, str(folder)], ENDS) for _ in range(repeat)]
    return Whole(min(taken for taken, _ in tries) - startup, startup, max(peak for _, peak in tries))


@dataclass(frozen=True)
class Again:
    """Processor seconds of a folder: without what is kept, when it is kept, when it is found, and ruff's."""

    without: float
    keeping: float
    finding: float
    ruff: float | None


def again(folder: Path, repeat: int) -> Again:
    """The command over a folder that it has seen before, and ruff over one that it has not."""
    best = [float("inf")] * 3
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as kept:
            keeping = [*COMMAND, "--cache-dir", kept, str(folder)]
            for number, call in enumerate(([*WITHOUT, str(folder)], keeping, keeping)):
                best[number] = min(best[number], used(call, ENDS)[0])
    ruff = [*RUFF, str(folder)]
    other = min(used(ruff, ENDS)[0] for _ in range(repeat)) if find_spec("ruff") else None
    return Again(best[0], best[1], best[2], other)


def start(repeat: int) -> dict[str, float]:
    """Processor seconds of calls with next to nothing to do, by what they are."""
    with tempfile.TemporaryDirectory() as folder:
        calls: dict[str, list[str]] = {"python -c pass": [sys.executable, "-c", "pass"]}
        for name, text in (("without a finding", SMALL), ("with one finding", FINDING)):
            file = Path(folder, f"{name.replace(' ', '_')}.py")
            file.write_text(text)
            calls[f"gradfix, a file {name}"] = [*WITHOUT, str(file)]
            calls[f"gradfix, the same again, {name}"] = [*COMMAND, "--cache-dir", f"{folder}/kept", str(file)]
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(repeat + 1):  # the first keeps what the others find
            for name, call in calls.items():
                best[name] = min(best[name], used(call, ENDS)[0])
    return best


def starts(taken: dict[str, float]) -> str:
    """What starting up takes, absolutely and by what Python takes itself."""
    least = next(iter(taken.values()))
    return "\n".join(f"{name:45s} {one:6.3f} s {one / least:6.1f} x" for name, one in taken.items())


def agains(found: dict[Path, Again]) -> str:
    """What a folder takes when it was looked at before."""
    names = ("folder", "without", "keeping", "finding", "ruff", "by ruff")
    rows = ["{:30s} {:>9s} {:>9s} {:>9s} {:>9s} {:>8s}".format(*names)]
    for folder, one in found.items():
        beside = f"{one.ruff:9.2f} {one.finding / one.ruff:8.2f}" if one.ruff else ""
        rows.append(
            f"{folder.name[-30:]:30s} {one.without:9.2f} {one.keeping:9.2f} {one.finding:9.2f} {beside}"
        )
    return "\n".join(rows)


def used(call: Sequence[str], expected: Container[int] = (0,)) -> tuple[float, float]:
    """Processor seconds and the peak of memory of one call."""
    started = [sys.executable, "-S", "-E", "-c", LAUNCH, *call]
    done = subprocess.run(started, capture_output=True, check=True, env=_environment())
    code, taken, peak = json.loads(done.stdout)
    if code not in expected:
        raise RuntimeError(f"the command ended with {code}: {' '.join(call)}")
    return float(taken), float(peak)


@cache
def _environment() -> dict[str, str]:
    """One in which everything is compiled, and nothing says what is kept and where."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("GRADFIX_")}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    own["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="gradfix-benchmarks-")
    atexit.register(shutil.rmtree, own["PYTHONPYCACHEPREFIX"], ignore_errors=True)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(FINDING)
        file.flush()
        subprocess.run([*WITHOUT, file.name], env=own, capture_output=True, check=False)
        subprocess.run(
            [*COMMAND, "--cache-dir", "/dev/null", file.name], env=own, capture_output=True, check=False
        )
    return own
