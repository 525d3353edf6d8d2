"""The user's interpreter, started: the ways to the one or two servers in it, by which programs are sent."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from gradfix.trace.processes import end_left_by

MARK = "GRADFIX_RUN"
"""In the environment of all that an interpreter starts, by which it is found when the interpreter is gone."""
BOOT = Path(__file__).parent.parent / "trace" / "boot.py"
PATIENCE = 5
"""How many seconds a server is given to end."""
NUMBERS = itertools.count()


class Server:
    """One of them."""

    def __init__(self, process: subprocess.Popen[bytes], jobs: IO[bytes], said: IO[bytes], mark: str) -> None:
        self.process = process
        self.jobs = jobs
        self.said = said
        self.mark = mark
        self.guest = False
        """Whether the interpreter is another one's to wait for."""
        self.shared = False
        """Whether two are at work in the interpreter, of which one takes the other one down with it."""
        self.answers: queue.Queue[bytes] = queue.Queue()
        self.reader: threading.Thread | None = None

    def listen(self) -> None:
        """Hear what it says, from here on. To be called where no process is forked any more."""
        self.reader = threading.Thread(target=read, args=(self.said, self.answers), daemon=True)
        self.reader.start()

    def ask(self, message: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
        """The answer to a job; None when there is nobody any more who would give it."""
        try:
            self.jobs.write(json.dumps(message).encode() + b"\n")
            self.jobs.flush()
        except (OSError, ValueError):  # the other end is gone, or somebody has closed ours
            return None
        return self.heard(seconds)

    def heard(self, seconds: float) -> dict[str, Any] | None:
        """The next answer; None when it keeps silent or has died."""
        try:
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            return None
        return dict(json.loads(line)) if line.endswith(b"\n") else None

    def kill(self) -> None:
        """End the interpreter, with all that was started in it."""
        self.process.kill()
        end_left_by(f"{MARK}={self.mark}")

    def close(self) -> None:
        """It has nothing to do any more: with the last server, the interpreter ends."""
        with contextlib.suppress(OSError):
            self.jobs.close()
        if not self.guest:
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.reader is not None:
            self.reader.join(PATIENCE)
        self.said.close()


def start(python: str, scratch: str, *, anew: bool, wide: bool) -> list[Server]:
    """Start an interpreter: it imports torch while something else is done; `wide`: with two servers."""
    mark = f"{scratch}.{next(NUMBERS)}"
    environment = {**os.environ, MARK: mark, "PYTHONHASHSEED": "0", "TORCHDYNAMO_DISABLE": "1"}
    jobs, said = (os.pipe(), os.pipe()) if wide else ((-1, -1), (-1, -1))
    inner = (jobs[0], said[1]) if wide else ()
    try:
        process = subprocess.Popen(
            [python, str(BOOT), *(["anew"] if anew else []), *map(str, inner)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            pass_fds=inner,
        )
    except OSError:
        for fd in (*jobs, *said) if wide else ():
            os.close(fd)
        raise
    assert process.stdin is not None and process.stdout is not None
    servers = [Server(process, process.stdin, process.stdout, mark)]
    if wide:
        for fd in inner:
            os.close(fd)
        servers.append(Server(process, os.fdopen(jobs[1], "wb"), os.fdopen(said[0], "rb"), mark))
        servers[1].guest = True
    return servers


def read(pipe: IO[bytes], answers: queue.Queue[bytes]) -> None:
    """Line after line into the queue; an empty one when the other side is gone."""
    with contextlib.suppress(OSError, ValueError):
        for line in pipe:
            answers.put(line)
    answers.put(b"")
