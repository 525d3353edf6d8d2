"""Runs the user's script, module or pytest selection under the recorder, in the process forked for it."""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import runpy
import shutil
import subprocess
import sys
import traceback
from importlib.metadata import entry_points
from multiprocessing import process as processes
from typing import Any

from gradfix.trace import children, guard, landlock, sandbox, shadow
from gradfix.trace.main import Main
from gradfix.trace.patched import Patched
from gradfix.trace.places import failure
from gradfix.trace.report import BY_CALLS, CONFINED
from gradfix.trace.way import Way

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
SEED = 0
SEEDED: list[int] = []
"""Not empty in forks that find torch and numpy seeded; Python's own numbers start anew in each."""


def run(job: dict[str, Any], pipe: int) -> int:
    """Prepare everything, run the program, report. The exit code is the program's."""
    os.environ.update(OFFLINE)
    os.environ.update(job.get("env", {}))
    os.chdir(job["cwd"])
    # multiprocessing leads its children to where it was imported: here that was before the job came.
    processes.ORIGINAL_DIR = job["cwd"]  # type: ignore[attr-defined]
    seed()
    way = Way(job, pipe)
    patched = Patched.of(job)
    protect(job, patched, way)
    patched.install()
    children.prepare(job)
    way.start()
    return watch_end(job, patched, way)


def join(job: dict[str, Any], main: Main) -> None:
    """In a process that the program has started, behind torch: record it as well."""
    seed()
    way = Way(job)
    if job.get("guarded"):
        shadow.install(job)
    way.announce()
    way.start()
    main.leave = way.leave
    atexit.register(way.leave)


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
        confined = shadow.install(job)
        way.session.state.notes.append(CONFINED if confined else BY_CALLS)
        job["guarded"], job["confined"] = True, confined


def ahead() -> None:
    """What each run would do, done before they are forked."""
    from gradfix.trace.session import Session

    # A class that is patched tells all that derive from it, once: a fork would copy each of them.
    session = Session(lambda _: None)
    session.start()
    session.stop()
    if sys.platform == "linux":  # elsewhere a generator may hold a device, and no device outlives a fork
        seed()
        SEEDED.append(SEED)


def seed() -> None:
    """Both runs draw the same numbers."""
    import torch

    random.seed(SEED)
    if SEEDED:
        return
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
    elif kind == "program":
        run_program(target, job.get("args", []))
    elif kind == "module":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        patched.run(target)


def run_program(name: str, args: list[str]) -> None:
    """What a shell would find under this name: `torchrun` and its like here, any other on its own."""
    for entry in entry_points(group="console_scripts", name=name):
        raise SystemExit(entry.load()())
    own = os.path.dirname(os.path.abspath(sys.executable))
    path = shutil.which(name, path=os.pathsep.join([own, os.environ.get("PATH", "")]))
    if path is None:
        raise FileNotFoundError(2, "neither a file nor a program", name)
    raise SystemExit(subprocess.run([path, *args], check=False).returncode)


def run_pytest(job: dict[str, Any]) -> None:
    """pytest without its cache and without workers: the recorder sees one process."""
    import pytest

    sys.path.insert(0, os.getcwd())
    args = ["-p", "no:cacheprovider", "-p", "no:xdist", *([job["target"]] if job["target"] else [])]
    code = pytest.main([*args, *job.get("args", [])])
    if int(code):
        raise SystemExit(int(code))
