"""How a command ends when its report finds no room, and what a shell is told that completes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradfix.registry import codemods

FULL = Path("/dev/full")
BROKEN = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(BROKEN)


def told(line: str) -> tuple[int, str]:
    """The exit code and the standard error of a line in the shell."""
    shell = line.replace("gradfix", f'"{sys.executable}" -m gradfix')
    done = subprocess.run(shell, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


def completed(words: str) -> list[str]:
    """What bash is offered for the last of these words."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from gradfix.cli import main; main(prog_name='gradfix')"],
        env=os.environ | asked | {"_GRADFIX_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.skipif(not FULL.exists(), reason="no device that is full")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param("gradfix train.py", id="a listing"),
        pytest.param("gradfix --output-format json train.py", id="a report for machines"),
        pytest.param("gradfix --diff train.py", id="a diff"),
        pytest.param("gradfix --apply - <train.py", id="a mended text"),
        pytest.param("gradfix --list-rules", id="a list of rules"),
        pytest.param("gradfix --version", id="a version"),
        pytest.param("gradfix run --help", id="the help of another command"),
    ],
)
def test_what_finds_no_room_is_said_in_one_line_and_fails(line: str) -> None:
    code, said = told(f"{line} >{FULL}")
    assert (code, said.count("\n")) == (2, 1 + ("findings" in said))
    assert "gradfix: cannot go on: no space left on device" in said


def test_a_page_that_cannot_be_written_is_named() -> None:
    code, said = told("gradfix --report nowhere/page.html train.py")
    assert (code, "Traceback" in said) == (2, False)
    assert said.splitlines()[-1] == "gradfix: cannot go on: nowhere/page.html: no such file or directory"


@pytest.mark.parametrize("stream", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code(stream: str) -> None:
    code, said = told(f"gradfix train.py {stream}")
    assert (code, "Traceback" in said) == (1, False)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param("gradfix --output-format sa", ["sarif"], id="a choice"),
        pytest.param("gradfix --min", ["--min-certainty"], id="an option"),
        pytest.param("gradfix run --st", ["--style"], id="an option of another command"),
        pytest.param("gradfix --select GF40", [f"GF40{n}" for n in range(1, 6)], id="a rule"),
        pytest.param(
            "gradfix --ignore GF101,GF301,GF40",
            [f"GF101,GF301,GF40{n}" for n in range(1, 6)],
            id="one of several rules",
        ),
        pytest.param(
            "gradfix --explain back", ["backward_in_no_grad", "backward_twice"], id="a rule by its name"
        ),
        pytest.param("gradfix w", ["why", "w"], id="a command, else a file"),
        pytest.param("gradfix train.py w", ["w"], id="another file"),
    ],
)
def test_a_shell_completes(words: str, offered: list[str]) -> None:
    assert completed(words) == offered


def test_nothing_typed_yet_offers_every_rule_by_its_code() -> None:
    assert completed("gradfix --explain ") == [each.rule.code for each in codemods().values()]
