"""Runs one script after another under torch, each in a fork of this process, which has imported it already.

Reads a path per line, answers with a line of JSON: the last lines of what went wrong, or null.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

SECONDS = 30
"""How long a script may take."""


def run(path: str) -> str | None:
    """The error that a script ends with, as Python words it, or None."""
    error, ended = forked(lambda: executed(Path(path), Path(path).read_bytes(), {}) or "")
    return f"the process ended with {ended}" if ended else error or None


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


def main() -> None:
    warm()
    for line in sys.stdin:
        print(json.dumps(run(line.rstrip("\n"))), flush=True)


if __name__ == "__main__":
    main()
