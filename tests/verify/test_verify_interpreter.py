"""Which interpreter runs a program: the one that its user would take, and one line says which."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradfix.verify.interpreter import chosen
from gradfix.verify.launch import Command, Job, Launcher


def environment(folder: Path, *, torch: bool = True) -> str:
    """Something that can be asked like an interpreter, with torch or without."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\nexit {int(not torch)}\n")
    python.chmod(0o755)
    return str(python)


def found(folder: Path, **active: Path) -> tuple[str, str]:
    one = chosen(None, str(folder), {name: str(path) for name, path in active.items()})
    return one.path, one.why


def test_what_is_asked_for_is_taken_unseen(tmp_path: Path) -> None:
    assert chosen("/no/such/python", str(tmp_path), {}).path == "/no/such/python"


def test_the_active_environment_goes_before_condas_and_the_projects(tmp_path: Path) -> None:
    venv, conda, project = tmp_path / "venv", tmp_path / "conda", tmp_path / "project"
    paths = [environment(venv), environment(conda), environment(project / ".venv")]
    inner = project / "src" / "deep"
    inner.mkdir(parents=True)
    both = {"VIRTUAL_ENV": venv, "CONDA_PREFIX": conda}
    assert found(inner, **both) == (paths[0], "the active virtual environment")
    assert found(inner, CONDA_PREFIX=conda) == (paths[1], "the active conda environment")
    assert found(inner) == (paths[2], "the project's .venv")


def test_one_without_torch_is_passed_over_for_one_that_has_it(tmp_path: Path) -> None:
    environment(tmp_path / "venv", torch=False)
    path = environment(tmp_path / ".venv")
    assert found(tmp_path, VIRTUAL_ENV=tmp_path / "venv") == (path, "the project's .venv")


def test_poetry_is_asked_where_the_project_is_poetrys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = environment(tmp_path / "cache")
    tool = tmp_path / "tools" / "poetry"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\n[ "$*" = "env info --executable" ] && echo {path}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    (tmp_path / "project").mkdir()
    assert found(tmp_path / "project")[1] != "poetry's environment"
    (tmp_path / "project" / "poetry.lock").touch()
    assert found(tmp_path / "project") == (path, "poetry's environment")


def test_an_environment_that_is_gone_is_no_choice(tmp_path: Path) -> None:
    assert found(tmp_path, VIRTUAL_ENV=tmp_path / "gone")[0] != str(tmp_path / "gone" / "bin" / "python")


def test_without_torch_the_message_names_the_option_and_the_extra(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    script = f'#!/bin/sh\nexec {sys.executable} -S "$@"\n'
    bare.write_text(script)
    bare.chmod(0o755)
    with Launcher(str(bare)) as launcher:
        said = launcher.run(Job(Command("script", "train.py"), str(tmp_path)))["stderr"]
    assert said.startswith(f"no torch in {bare}; ")
    assert "--python" in said and "gradfix[verify]" in said


def test_the_command_says_which_one_it_takes_unless_it_is_its_own(tmp_path: Path) -> None:
    path = environment(tmp_path / ".venv")
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    for active, first in (("", "gradfix: runs .venv/bin/python (the project's .venv)"), (sys.prefix, "")):
        words = [sys.executable, "-m", "gradfix", "run", "train.py"]
        around = {**os.environ, "VIRTUAL_ENV": active, "CONDA_PREFIX": ""}
        done = subprocess.run(words, cwd=tmp_path, env=around, capture_output=True, text=True, check=False)
        assert done.stderr.partition("\n")[0] == first, path
