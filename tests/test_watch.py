"""Watching: a run whenever something changes, nothing in between, and an end by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
import toy
from click.testing import CliRunner
from terminal import ON_TOY, Shell, environment

from gradfix.cli import main
from gradfix.config import Config
from gradfix.watch import Watched

GATED = "import torch\n"
WAITING = "waiting for changes; Ctrl-C ends"
CLEARED = "\x1b[2J"


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toy.install(monkeypatch.setattr)


def make(name: str, text: str) -> Path:
    """A file that concerns autograd, there at once with all that is in it."""
    Path(name).parent.mkdir(exist_ok=True)
    return put(Path(name), GATED + text)


def put(file: Path, text: str) -> Path:
    beside = file.with_suffix(".new")
    beside.write_text(text)
    return beside.replace(file)


class Watcher:
    """A command that watches, its two streams as one pipe."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: Queue[str] = Queue()
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def turn(self) -> list[str]:
        """The lines of the next turn, up to the one that says that it waits."""
        told: list[str] = []
        while not told or WAITING not in told[-1]:
            told.append(self.lines.get(timeout=60))
        return told[:-1]

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing is said for so long."""
        time.sleep(seconds)
        return self.lines.empty()


@contextmanager
def watching(*arguments: str) -> Iterator[Watcher]:
    words = [sys.executable, "-u", "-c", ON_TOY, "--watch", "--output-format", "concise", *arguments]
    with subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield Watcher(process)
        finally:
            process.kill()


def found(lines: list[str]) -> list[str]:
    """Where something was found."""
    return [line.partition(": ")[0] for line in lines if " TOY" in line]


def test_a_change_starts_another_run_and_no_change_starts_none() -> None:
    file = make("a.py", "x += y\n")
    with watching() as watcher:
        assert found(watcher.turn()) == ["a.py:2:1"]
        assert watcher.is_quiet(1.5)
        put(file, GATED + "\nx += y\n")
        assert found(watcher.turn()) == ["a.py:3:1"]
        make("b/b.py", "z += y\n")
        assert found(watcher.turn()) == ["a.py:3:1", "b/b.py:2:1"]
        file.unlink()
        assert found(watcher.turn()) == ["b/b.py:2:1"]


def test_what_it_has_itself_written_starts_no_other_run() -> None:
    file = make("a.py", "x += y\nz *= y\n")
    with watching("--fix") as watcher:
        assert "a.py:2: fixed TOY1 safe_toy: x = x + y\n" in watcher.turn()
        assert watcher.is_quiet(1.5)
        put(file, file.read_text() + "q += y\n")
        assert "a.py:4: fixed TOY1 safe_toy: q = q + y\n" in watcher.turn()
    assert file.read_text() == GATED + "x = x + y\nz *= y\nq = q + y\n"


def test_settings_are_read_anew_and_broken_ones_are_waited_out() -> None:
    make("a.py", "x += y\nx *= y\n")
    with watching() as watcher:
        assert found(watcher.turn()) == ["a.py:2:1", "a.py:3:1"]
        settings = Path("pyproject.toml")
        put(settings, "[tool.gradfix]\nselect = ['TOX']\n")
        assert "'TOX' names no rule" in watcher.lines.get(timeout=60)
        put(settings, "[tool.gradfix]\nselect = ['TOY3']\n")
        assert found(watcher.turn()) == ["a.py:3:1"]


def test_a_file_that_fails_is_told_of_and_the_watch_goes_on() -> None:
    file = make("a.py", "x += y\n")
    with watching() as watcher:
        watcher.turn()
        put(file, "import torch\nx += (\n")
        assert any("a.py:2: failed (parse)" in line for line in watcher.turn())
        put(file, GATED + "x += y\n")
        assert found(watcher.turn()) == ["a.py:2:1"]


def test_what_other_modules_say_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tape itself: whether the imported layer works in place decides about the write."""
    make("layers.py", "def act(x):\n    return x.exp()\n")
    make(
        "a.py",
        "from layers import act\ny = act(torch.ones(3, requires_grad=True))\ny += 1\ny.sum().backward()\n",
    )
    real = ON_TOY.replace("toy.install(setattr)\n", "")
    words = [sys.executable, "-u", "-c", real, "--watch", "--output-format", "concise", "a.py", "layers.py"]
    with subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        watcher = Watcher(process)
        assert any("GF101" in line for line in watcher.turn())
        make("layers.py", "def act(x):\n    return x * 2\n")
        assert not any("GF101" in line for line in watcher.turn())
        process.kill()


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no SIGINT here")
def test_ctrl_c_ends_with_130() -> None:
    make("a.py", "x += y\n")
    with watching() as watcher:
        watcher.turn()
        watcher.process.send_signal(signal.SIGINT)
        assert watcher.process.wait(timeout=60) == 130
        assert watcher.lines.get(timeout=60) == "interrupted\n"


def test_a_pipe_is_never_cleared() -> None:
    file = make("a.py", "x += y\n")
    with watching() as watcher:
        first = watcher.turn()
        put(file, GATED + "x *= y\n")
        assert "\x1b" not in "".join([*first, *watcher.turn()])


def test_a_terminal_is_cleared_before_each_run_but_the_first() -> None:
    file = make("a.py", "x += y\n")
    shell = Shell("--watch", "--color", "never")
    assert CLEARED not in shell.until(WAITING)
    put(file, GATED + "x *= y\n")
    told = shell.until(WAITING)
    assert told.count(CLEARED) == 1 and told.index(CLEARED) < told.index("a.py:2:1 TOY3")
    os.write(shell.ours, b"\x03")
    assert shell.typed()[0] == 130


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["-"], "standard input", id="standard input"),
        pytest.param(["--interactive"], "--interactive does not go with --watch", id="questions"),
        pytest.param(["--select", "TOX"], "'TOX' names no rule", id="settings that are wrong from the start"),
    ],
)
def test_a_call_that_cannot_watch_ends_at_once(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["--watch", *arguments], prog_name="gradfix")
    assert (result.exit_code, words in result.stderr) == (2, True)


def test_what_is_looked_at_is_what_a_run_would_find() -> None:
    make("a.py", "")
    make("build/b.py", "")
    make("c.txt", "")
    settings = Path("pyproject.toml")
    watched = Watched((".",), Config(Path.cwd()), (str(settings),))
    assert set(watched.look()) == {"a.py"}
    settings.write_text("")
    assert set(watched.look()) == {"a.py", "pyproject.toml"}
    before = watched.look()
    assert watched.look() == before
    os.utime("a.py", ns=(1, 1))
    assert watched.look() != before
