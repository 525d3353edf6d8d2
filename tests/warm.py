"""Runs scripts under torch in forks of this process, which has imported it already.

Reads a line of JSON per question, the paths of scripts that run one after another in one fork, and answers
with one: for each of them the last lines of what went wrong, or null.
"""

from __future__ import annotations

import gc
import io
import json
import os
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

SECONDS = 30
"""How long a script may take."""


def run(paths: list[str]) -> list[str | None]:
    """The error that each script ends with, or None; if one of them ends the process, each has its own."""
    answer, ended = forked(lambda: json.dumps([alone(path) for path in paths]))
    if not ended:
        answers: list[str | None] = json.loads(answer)
        return answers
    if len(paths) > 1:
        return [error for path in paths for error in run([path])]
    return [f"the process ended with {ended}"]


def alone(path: str) -> str | None:
    """The error of a script that finds the process as if no other had run in it."""
    with afresh():
        return executed(Path(path), Path(path).read_bytes(), {})


@contextmanager
def afresh() -> Iterator[None]:
    """A program begins as in a process of its own, and takes with it the modules that it made up."""
    import torch

    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.autograd.set_detect_anomaly(False)
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    modules, places, argv = set(sys.modules), [*sys.path], sys.argv
    try:
        yield
    finally:
        sys.path[:], sys.argv = places, argv
        for name in sys.modules.keys() - modules:
            if sys.modules[name].__spec__ is None:
                del sys.modules[name]


def forked(answer: Callable[[], str]) -> tuple[str, int]:
    """What a fork of this process answers, and how it ended."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        signal.alarm(SECONDS)
        with os.fdopen(sender, "wb") as pipe:
            pipe.write(answer().encode())
            pipe.flush()
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return text, os.waitstatus_to_exitcode(status)


def executed(path: Path, script: bytes, names: dict[str, object]) -> str | None:
    """Run a script as if it stood at this path, in these globals; the error that it ends with, or None."""
    warnings.simplefilter("ignore")
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    names |= {"__name__": "__main__", "__file__": str(path)}
    try:
        with redirect_stdout(io.StringIO()):
            exec(compile(script, str(path), "exec"), names)
    except BaseException as error:  # whatever ends the script is its answer, SystemExit too
        return "".join(traceback.format_exception_only(error))
    return None


def warm() -> None:
    """Import all of torch that scripts will ask for."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.optim.Adam(nn.Linear(1, 1).parameters())  # the first optimizer imports the compiler
    gc.collect()
    gc.freeze()  # a collection in a fork would have to copy all that it looks at


def main() -> None:
    warm()
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
