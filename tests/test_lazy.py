"""What a call pays for: a file of which there is nothing to say costs neither libcst nor a codemod."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEALTHY = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.ones(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LEGAL = HEALTHY.replace("    loss.backward()", "    loss *= 2\n    loss.backward()")
SILENCED = HEALTHY.replace(
    "    optimizer.zero_grad()\n    loss.backward()", "    loss.backward()  # gradfix: ignore[GF401]"
)
BROKEN = HEALTHY.replace("    optimizer.zero_grad()\n", "")
GATED = "import json\n\nprint(json.dumps({}))\n"
ASK = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from gradfix.cli import main
main(prog_name="gradfix")
"""


def imported(folder: Path, *words: str) -> set[str]:
    """The modules that a call has imported when it ends."""
    command = [sys.executable, "-c", ASK, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return set(done.stderr.splitlines()[-1].split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def codemods(modules: set[str]) -> set[str]:
    return {name.removeprefix("gradfix.codemods.") for name in modules if "gradfix.codemods." in name}


def test_what_reads_notebooks_is_imported_for_a_notebook_only(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BROKEN)
    (tmp_path / "b.ipynb").write_text('{"cells": [], "nbformat": 4, "torch": 1}')
    assert "gradfix.notebook" not in imported(tmp_path, "a.py")
    assert "gradfix.notebook" in imported(tmp_path, "b.ipynb")


@pytest.mark.parametrize(
    ("text", "played"),
    [
        pytest.param(HEALTHY, True, id="in a healthy training loop"),
        pytest.param(LEGAL, True, id="for what only a rule that is off would find"),
        pytest.param(SILENCED, True, id="for what a comment silences"),
        pytest.param(GATED, False, id="in a file that has nothing to do with autograd"),
    ],
)
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param("", id="with the rules that are on by default"),
        pytest.param(
            "[tool.gradfix]\nignore = ['GF101']\nextend-select = ['GF303']\n", id="with selected rules"
        ),
    ],
)
def test_without_a_finding_nothing_that_rewrites_is_imported(
    text: str, played: bool, settings: str, tmp_path: Path
) -> None:
    (tmp_path / "file.py").write_text(text)
    (tmp_path / "pyproject.toml").write_text(settings)
    modules = imported(tmp_path, "file.py")
    dear = {"libcst", "rich", "unidiff", "pathspec", "multiprocessing", "concurrent", "asyncio", "pygls"}
    assert not packages(modules) & dear
    assert (codemods(modules), "gradfix.tape.entries" in modules) == (set(), played)


def test_a_listing_imports_nothing_that_reads_tracebacks(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(BROKEN)
    assert not {name for name in imported(tmp_path, "file.py") if name.startswith("gradfix.why")}


def test_a_finding_imports_its_own_codemod_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(BROKEN)
    modules = imported(tmp_path, "file.py")
    assert (codemods(modules), "libcst" in modules) == ({"missing_zero_grad"}, True)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--list-rules"], id="listed"),
        pytest.param(["--explain", "GF101"], id="explained"),
        pytest.param(["--select", "GF1", "--output-format", "sarif", "file.py"], id="told of in a report"),
    ],
)
def test_rules_are_known_without_their_codemods(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(HEALTHY)
    modules = imported(tmp_path, *words)
    assert (codemods(modules), "libcst" in modules) == (set(), False)


def test_a_clean_folder_imports_what_reads_patterns_and_nothing_that_rewrites(tmp_path: Path) -> None:
    (tmp_path / "healthy.py").write_text(HEALTHY)
    (tmp_path / "gated.py").write_text(GATED)
    modules = imported(tmp_path, ".")
    assert (codemods(modules), "libcst" in modules, "pathspec" in modules) == (set(), False, True)
