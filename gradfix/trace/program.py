"""Runs the user's script, module or pytest selection under the recorder, in the process forked for it."""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import json
import os
import random
import runpy
import sys
import time
import traceback
from types import ModuleType
from typing import Any

from gradfix.trace import compiler, guard, landlock, sandbox, shadow, tripwire
from gradfix.trace.patched import Patched
from gradfix.trace.places import absolute, failure
from gradfix.trace.report import Failure
from gradfix.trace.session import Session

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "COMET_MODE": "disabled",
    "MPLBACKEND": "Agg",
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
CONFINED = "no namespaces here: the kernel refuses what would change files, and connections to others"
BY_CALLS = "no namespaces here, nor Landlock: writes and connections are held back call by call"
SEED = 0
PATIENCE = 0.5
"""The share of the time limit in which steps beyond the allowed ones are run for optimizers that wait."""
MOST_GRADS = 300
"""Calls of `autograd.grad` for each step that is allowed: one meta-step may hold many inner ones."""


class Way:
    """The pipe to the parent, and the one way to end."""

    def __init__(self, pipe: int, job: dict[str, Any]) -> None:
        self.pipe = os.dup(pipe) if pipe < 64 else pipe
        self.own = os.fstat(self.pipe).st_ino
        self.job = job
        self.session = Session(self.emit, bool(job.get("hunt")))
        self.process = os.getpid()
        self.ended = False
        self.exit = os._exit
        self.patient = time.monotonic() + PATIENCE * float(job.get("time_limit", 60))
        """Until when an optimizer that has not stepped yet is waited for."""

    def emit(self, event: Any) -> None:
        """One event, at once: the program may not live to its end."""
        data = (self.job.get("token", "") + json.dumps(event) + "\n").encode()
        with contextlib.suppress(OSError):
            # A program that closes every file may have opened its own under this number.
            while data and os.fstat(self.pipe).st_ino == self.own:
                data = data[os.write(self.pipe, data) :]
        if event["event"] == "defect" and self.job.get("first_defect"):
            self.job["max_steps"] = 0

    def end(self, how: str, error: Failure | None = None) -> None:
        """Say the last words, once."""
        if self.ended or os.getpid() != self.process:
            return
        self.ended = True
        ending = self.session.ending(how, error)
        ending["compiler"] = not compiler.postponed()
        ending["held_back"] = sorted(set(tripwire.HELD))
        self.emit(ending)

    def check(self) -> None:
        """Stop when enough has been seen."""
        state, most = self.session.state, int(self.job.get("max_steps", 3))
        counts = [*state.ledger.steps.values(), *state.ledger.hand.values()]
        optimizers = max(len(state.ledger.steps), 1)
        if counts:
            done = min(counts) >= most or sum(state.ledger.steps.values()) >= 4 * most * optimizers
        else:
            given = self.session.backwards
            done = given.filled >= max(2 * most - 1, 1) or given.succeeded >= max(MOST_GRADS * most, 1)
        if done and (most == 0 or not self.waits()):
            self.end("stopped")
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    continue
            self.exit(0)

    def waits(self) -> bool:
        """Whether an optimizer has yet to step, and gradients are there for it."""
        early = time.monotonic() < self.patient and self.session.backwards.filled > 0
        return early and bool(self.session.steps.idle())

    def os_exit(self, code: int) -> None:
        """What the program gets for os._exit."""
        self.end("exit")
        self.exit(code)


def run(job: dict[str, Any], pipe: int) -> int:
    """Prepare everything, run the program, report. The exit code is the program's."""
    os.environ.update(OFFLINE)
    os.environ.update(job.get("env", {}))
    os.chdir(job["cwd"])
    seed()
    way = Way(pipe, job)
    patched = Patched({name: text.encode("latin-1") for name, text in job.get("texts", {}).items()})
    protect(job, patched, way)
    patched.install()
    os._exit = way.os_exit  # type: ignore[assignment]
    way.session.steps.after = way.check
    way.session.backwards.after = way.check
    way.session.start()
    return watch_end(job, patched, way)


def protect(job: dict[str, Any], patched: Patched, way: Way) -> None:
    """Keep the user's files and network out of reach."""
    watcher = os.getppid()
    if not job.get("allow_writes"):
        shut(job, patched, way)
    if "door" in job:
        # The kernel forgets this where a process gets other powers.
        guard.die_with(watcher)
        with contextlib.suppress(OSError):
            os.close(job["door"])


def shut(job: dict[str, Any], patched: Patched, way: Way) -> None:
    """As well as this system lets us."""
    if sandbox.enter(job):
        for name, data in patched.texts.items():
            sandbox.put(name, data)
        os.chdir(job["cwd"])
        if not job.get("no_landlock"):
            landlock.apart()
    else:
        way.session.state.notes.append(CONFINED if shadow.install(job) else BY_CALLS)


def seed() -> None:
    """Both runs draw the same numbers."""
    import torch

    random.seed(SEED)
    torch.manual_seed(SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(SEED)


def watch_end(job: dict[str, Any], patched: Patched, way: Way) -> int:
    """Run, and turn whatever comes out into an ending and an exit code."""
    try:
        execute(job, patched)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if code and not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
        way.end("exit" if code else "finished", failure(stop, stop.__traceback__) if code else None)
        return code
    except BaseException as error:
        way.end("error", failure(error, error.__traceback__))
        show(error)
        return 1
    way.end("finished")
    return 0


def show(error: BaseException) -> None:
    """The traceback as Python prints it, without the recorder's own frames."""
    kept = traceback.TracebackException.from_exception(error)
    own = os.path.dirname(os.path.abspath(__file__))
    kept.stack = traceback.StackSummary.from_list([f for f in kept.stack if not f.filename.startswith(own)])
    print("".join(kept.format()), file=sys.stderr, end="")


def execute(job: dict[str, Any], patched: Patched) -> None:
    """The program itself: as `python script`, `python -m module` or pytest would run it."""
    kind, target = job["kind"], job["target"]
    sys.argv = [target, *job.get("args", [])]
    if kind == "pytest":
        run_pytest(job)
    elif kind == "module":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        run_script(target, patched)


def run_script(target: str, patched: Patched) -> None:
    """As runpy.run_path, with the module left in sys.modules so that pickling finds it."""
    path = os.path.abspath(target)
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    module = ModuleType("__main__")
    module.__dict__.update(__file__=target, __builtins__=builtins, __cached__=None)
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", target)
    sys.modules["__main__"] = module
    code = compile(patched.read(path), absolute(target), "exec", dont_inherit=True)
    exec(code, module.__dict__)


def run_pytest(job: dict[str, Any]) -> None:
    """pytest without its cache and without workers: the recorder sees one process."""
    import pytest

    sys.path.insert(0, os.getcwd())
    args = ["-p", "no:cacheprovider", "-p", "no:xdist", *([job["target"]] if job["target"] else [])]
    code = pytest.main([*args, *job.get("args", [])])
    if int(code):
        raise SystemExit(int(code))
