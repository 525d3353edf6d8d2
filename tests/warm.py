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
from contextlib import redirect_stdout
from pathlib import Path

SECONDS = 30
"""How long a script may take."""


def run(path: str) -> str | None:
    """The error that a script ends with, as Python words it, or None."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        with os.fdopen(sender, "wb") as pipe:
            pipe.write((_executed(Path(path)) or "").encode())
            pipe.flush()
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        error = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    return f"the process ended with {ended}" if ended else error or None


def _executed(path: Path) -> str | None:
    signal.alarm(SECONDS)
    warnings.simplefilter("ignore")
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    try:
        with redirect_stdout(io.StringIO()):
            exec(
                compile(path.read_bytes(), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)}
            )
    except BaseException as error:  # whatever ends the script is its answer, SystemExit too
        return "".join(traceback.format_exception_only(error))
    return None


def main() -> None:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.optim.Adam(nn.Linear(1, 1).parameters())  # the first optimizer imports the compiler
    for line in sys.stdin:
        print(json.dumps(run(line.rstrip("\n"))), flush=True)


if __name__ == "__main__":
    main()
