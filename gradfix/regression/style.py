"""The layout of the project's own tools, where they are configured and at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATIENCE = 20.0


def formatted(text: str, path: Path, python: str) -> str:
    """A file's text as the project's formatter has it; as it is, where there is none or it fails."""
    for words in tools(path, python):
        text = said(words, text, path.parent) or text
    return text


def tools(path: Path, python: str) -> Iterator[list[str]]:
    """The commands that read a text from standard input and write it as the project wants it."""
    name = configured(path.absolute().parent)
    program = found(name, python) if name else None
    if program and name == "ruff":
        yield [program, "check", "--fix-only", "--quiet", "--stdin-filename", str(path), "-"]
        yield [program, "format", "--quiet", "--stdin-filename", str(path), "-"]
    elif program:
        yield [program, "--quiet", "--stdin-filename", str(path), "-"]


def configured(folder: Path) -> str:
    """Which formatter the nearest settings above a folder speak of."""
    for above in (folder, *folder.parents):
        if (above / "ruff.toml").is_file() or (above / ".ruff.toml").is_file():
            return "ruff"
        if (above / "pyproject.toml").is_file():
            return of_settings(above / "pyproject.toml")
    return ""


def of_settings(path: Path) -> str:
    """The formatter in a pyproject.toml: ruff, or else black."""
    try:
        settings = tomllib.loads(path.read_text("utf-8")).get("tool", {})
    except (OSError, ValueError):
        return ""
    return next((name for name in ("ruff", "black") if name in settings), "")


def found(name: str, python: str) -> str | None:
    """A tool of the environment that runs the project, or the one that a shell would find."""
    beside = os.path.dirname(os.path.abspath(python))
    return shutil.which(name, path=beside) or shutil.which(name)


def said(words: Sequence[str], text: str, folder: Path) -> str:
    """What a command makes of a text; nothing, if it fails."""
    cwd = next((one for one in (folder, *folder.parents) if one.is_dir()), None)
    try:
        done = subprocess.run(
            words, input=text.encode(), capture_output=True, timeout=PATIENCE, check=False, cwd=cwd
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
