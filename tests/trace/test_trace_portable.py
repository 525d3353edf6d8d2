"""What only Unix has is asked for where it is used: without it gradfix still imports, reads and writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BLOCKED = """
import os, signal, socket, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[name] = None
for owner, names in (
    (os, ("fork", "setsid", "killpg", "getuid", "getgid", "chown", "sysconf", "register_at_fork",
          "O_NONBLOCK", "sched_getaffinity")),
    (signal, ("SIGKILL", "SIGALRM", "alarm", "setitimer", "pthread_sigmask")),
    (socket, ("AF_UNIX",)),
):
    for name in names:
        vars(owner).pop(name, None)
"""
IMPORTS = """
import importlib, pkgutil
import gradfix
for found in pkgutil.walk_packages(gradfix.__path__, "gradfix."):
    with_torch = found.name.startswith(("gradfix.trace.", "gradfix.driver.search."))
    if found.name != "gradfix.__main__" and not with_torch:
        importlib.import_module(found.name)
for name in ("boot", "processes", "report", "sandbox", "server", "fresh", "patched", "guard", "tripwire"):
    importlib.import_module("gradfix.trace." + name)
"""
BROKEN = "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()\n"


def without_unix(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *words], capture_output=True, text=True, check=False
    )


def test_every_part_imports() -> None:
    done = without_unix(IMPORTS)
    assert (done.returncode, done.stderr) == (0, "")


def test_lists_and_rewrites(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(BROKEN)
    done = without_unix("from gradfix.cli import main\nmain()", "--apply", "--jobs", "1", str(path))
    assert done.returncode == 0, done.stderr
    assert "y = y + 1" in path.read_text()
