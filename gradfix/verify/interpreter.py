"""Which interpreter runs the user's program: the one that the user would run it with."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 20.0
HAS_TORCH = "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One that could run a program, and how it came into question."""

    path: str
    why: str

    @property
    def own(self) -> bool:
        """Whether it is the one that runs gradfix."""
        return os.path.dirname(os.path.abspath(self.path)) == os.path.dirname(os.path.abspath(sys.executable))

    @property
    def has_torch(self) -> bool:
        """Whether torch can be found there; it is not imported."""
        if self.own:
            return importlib.util.find_spec("torch") is not None
        try:
            words = [self.path, "-c", HAS_TORCH]
            return not subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode
        except (OSError, subprocess.SubprocessError):
            return False

    def __str__(self) -> str:
        near = os.path.relpath(self.path)
        return f"{self.path if near.startswith(os.pardir) else near} ({self.why})"


def chosen(given: str | None, folder: str, environment: Mapping[str, str] = os.environ) -> Interpreter:
    """The one that is asked for; else the first in question that has torch; else the first one."""
    if given:
        return Interpreter(given, "--python")
    found = list(in_question(Path(folder).absolute(), environment))
    return next((one for one in found if one.has_torch), found[0])


def in_question(folder: Path, environment: Mapping[str, str]) -> Iterator[Interpreter]:
    """What is active first, then what belongs to the project, then gradfix's own."""
    named = (
        ("VIRTUAL_ENV", "the active virtual environment"),
        ("CONDA_PREFIX", "the active conda environment"),
    )
    for variable, why in named:
        prefix = environment.get(variable)
        path = python_in(Path(prefix)) if prefix else None
        if path:
            yield Interpreter(path, why)
    folders = (folder, *folder.parents)
    if any((one / "poetry.lock").is_file() for one in folders) and (path := of_poetry(folder)):
        yield Interpreter(path, "poetry's environment")
    for one in folders:
        if path := python_in(one / ".venv"):
            yield Interpreter(path, "the project's .venv")
            break
    yield Interpreter(sys.executable, "gradfix's own")


def python_in(prefix: Path) -> str | None:
    """The interpreter of an environment, if there is one."""
    for name in ("bin/python", "Scripts/python.exe", "python.exe"):
        if (prefix / name).is_file():
            return str(prefix / name)
    return None


def of_poetry(folder: Path) -> str | None:
    """What poetry runs this project with."""
    poetry = shutil.which("poetry")
    if poetry is None:
        return None
    words = [poetry, "env", "info", "--executable"]
    try:
        said = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return said if said and os.path.isfile(said) else None
