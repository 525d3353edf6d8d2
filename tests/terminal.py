"""gradfix at a real terminal, with the toy in the place of the tape and of the rules."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

ON_TOY = """
import signal, toy
from gradfix.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start without it
toy.install(setattr)
main(prog_name="gradfix")
"""
PROMPT = "?]?"


def environment() -> dict[str, str]:
    tests = Path(__file__).parent
    paths = os.pathsep.join((str(tests), str(tests.parent)))
    return {**os.environ, "PYTHONPATH": paths, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": ""}


class Shell:
    """A command at a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_TOY, *arguments],
            env=environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=own_terminal,
        )
        os.close(theirs)
        self.said = ""

    def typed(self, *answers: str) -> tuple[int, str]:
        """Type each answer when a question is asked; the exit code, and all that was shown."""
        waiting = list(answers)
        seen = 0
        while piece := self.read():
            self.said += piece
            if PROMPT in self.said[seen:] and waiting:
                seen = len(self.said)
                os.write(self.ours, waiting.pop(0).encode())
        os.close(self.ours)
        assert waiting == []
        return self.process.wait(timeout=60), self.said.replace("\r\n", "\n")

    def until(self, words: str) -> str:
        """All that is shown until these words come."""
        begun = len(self.said)
        while words not in self.said[begun:]:
            piece = self.read()
            assert piece, self.said
            self.said += piece
        return self.said[begun:]

    def read(self) -> str:
        """What came last; nothing once the other side is closed."""
        try:
            return os.read(self.ours, 65536).decode()
        except OSError:
            return ""


def own_terminal() -> None:
    """Make standard input the terminal of the process, so that Ctrl-C reaches it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
