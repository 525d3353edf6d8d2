"""`gradfix why` on the command line: what it reads, prints and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradfix.cli import main

TRAIN = """\
import torch

x = torch.ones(3, requires_grad=True)
y = torch.sigmoid(x)
y += 1
y.sum().backward()
"""
TRACE = """\
Traceback (most recent call last):
  File "/home/a/train.py", line 6, in <module>
    y.sum().backward()
  File "/opt/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace \
operation: [torch.FloatTensor [3]], which is output 0 of SigmoidBackward0, is at version 1; expected \
version 0 instead. Hint: enable anomaly detection to find the operation
"""


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("train.py").write_text(TRAIN)
    Path("trace.txt").write_text(TRACE)


def why(*words: str, stdin: str | bytes = "") -> Result:
    result = CliRunner().invoke(main, ["why", *words], input=stdin, prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_a_file_is_read_and_the_line_at_fault_is_told_with_its_rewrite() -> None:
    result = why("trace.txt")
    assert result.exit_code == 1
    assert "1. train.py:5 GF101 [the line at fault, certain, safe fix]" in result.stdout
    assert "raised at: train.py:6  y.sum().backward()" in result.stdout
    assert "  -y += 1\n  +y = y + 1\n" in result.stdout
    assert result.stderr == ""


def test_no_line_is_wider_than_the_terminal() -> None:
    assert max(map(len, why("trace.txt").stdout.splitlines())) <= 80


def test_colour_changes_no_word() -> None:
    import re

    coloured = why("trace.txt", "--color", "always").stdout
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == why("trace.txt", "--color", "never").stdout
    assert "\x1b[" in coloured


def test_standard_input_is_read_for_a_dash() -> None:
    assert why("-", stdin=TRACE).stdout == why("trace.txt").stdout


def test_what_powershell_writes_is_read() -> None:
    Path("utf16.txt").write_bytes(TRACE.encode("utf-16"))
    assert why("utf16.txt").stdout == why("trace.txt").stdout


def test_other_files_are_named_behind_the_traceback() -> None:
    Path("proj").mkdir()
    Path("train.py").rename("proj/train.py")
    Path("elsewhere").mkdir()
    assert "proj/train.py:5 GF101" in why("trace.txt", "proj").stdout
    assert "none of the traceback's frames was found" in " ".join(
        why("trace.txt", "elsewhere").stdout.split()
    )


def test_json_carries_facts_frames_and_culprits() -> None:
    result = why("trace.txt", "--output-format", "json")
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (told["message"], told["facts"]["shape"]) == ("overwritten", "3")
    assert told["frames"][0]["in_traceback"] == {"filename": "/home/a/train.py", "row": 6}
    culprit = told["culprits"][0]
    assert (culprit["filename"], culprit["location"]["row"], culprit["code"]) == ("train.py", 5, "GF101")
    assert culprit["sure"] == "shown" and culprit["diff"].startswith("--- a/train.py")


def test_a_failure_that_is_about_something_else_is_no_finding() -> None:
    result = why("-", stdin=TRACE.partition("RuntimeError")[0] + "ValueError: shapes differ\n")
    assert (result.exit_code, "nothing to do with gradients" in result.stdout) == (0, True)


def test_a_program_that_has_not_failed_is_no_finding() -> None:
    result = why("-", stdin="epoch 1\nepoch 2\n")
    assert (result.exit_code, result.stdout) == (0, "nothing failed in what came through the pipe\n\n")


def test_a_file_without_a_traceback_fails_and_says_what_to_give() -> None:
    Path("log.txt").write_text("epoch 1\n")
    result = why("log.txt")
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert "give the whole output from `Traceback (most recent call last)` on" in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param([], "give a traceback", id="nothing at all"),
        pytest.param(["missing.txt"], "give the file that holds the traceback", id="a file that isn't there"),
        pytest.param(["."], "the traceback comes first", id="a folder for the traceback"),
        pytest.param(["trace.txt", "missing"], "no such file or directory", id="a folder that isn't there"),
        pytest.param(["--symptom", "it is slow"], "loss does not decrease", id="a symptom that isn't known"),
    ],
)
def test_wrong_usage_says_what_to_do_for(words: list[str], says: str) -> None:
    result = why(*words)
    assert result.exit_code == 2 and says in result.stderr


CUT = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.ones(2, 3)).sum()
    loss = torch.tensor(loss.item(), requires_grad=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "symptom",
    [
        "loss does not decrease",
        "my loss doesn't go down",
        "The model is not learning",
        "grad is None for net.weight",
    ],
)
def test_a_symptom_is_explained_by_what_fails_in_silence(symptom: str) -> None:
    Path("cut.py").write_text(CUT)
    result = why("--symptom", symptom, "cut.py")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2].startswith("1. cut.py:8 GF")


def test_the_tensor_that_a_symptom_names_decides() -> None:
    text = "import torch\n\n" + "".join(
        f"{name} = torch.ones(3, requires_grad=True) * 2\nopt_{name} = torch.optim.SGD([{name}], lr=0.1)\n"
        for name in ("first", "second")
    )
    Path("two.py").write_text(text)
    assert (
        why("--symptom", "grad is None for second", "two.py").stdout.splitlines()[2].startswith("1. two.py:5")
    )


def test_a_symptom_that_nothing_explains_is_no_finding() -> None:
    result = why("--symptom", "memory grows", "train.py")
    assert result.exit_code == 0 and "nothing that was read explains it" in result.stdout


def test_nothing_is_run_imported_or_written() -> None:
    Path("train.py").write_text(TRAIN + "raise SystemExit('was run')\nopen('written', 'w')\n")
    before = sorted(os.listdir())
    assert why("trace.txt").exit_code == 1
    assert sorted(os.listdir()) == before


def test_what_a_program_writes_is_passed_on_as_it_is_read() -> None:
    command = [sys.executable, "-m", "gradfix", "why", "-"]
    done = subprocess.run(command, input=TRACE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, TRACE)
    assert "train.py:5 GF101" in done.stdout


def test_the_files_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    result = why("../trace.txt", "..")
    assert result.exit_code == 1
    assert "1. ../train.py:5 GF101 [the line at fault" in result.stdout
    assert "raised at: ../train.py:6  y.sum().backward()" in result.stdout


def test_a_traceback_without_its_last_line_says_what_is_missing() -> None:
    result = why("-", stdin="".join(TRACE.splitlines(keepends=True)[:3]))
    assert result.exit_code == 2 and result.stdout == ""
    assert "ends before its last line" in result.stderr


@pytest.mark.parametrize("trace", ["trace.txt", "-"])
def test_a_symptom_goes_with_no_traceback(trace: str) -> None:
    result = why(trace, "--symptom", "grad is None for w", stdin=TRACE)
    assert result.exit_code == 2
    assert f"--symptom and a traceback ({trace}): give one of them" in result.stderr


CELLS = (
    "%matplotlib inline\nimport torch\nx = torch.ones(3, requires_grad=True)",
    "y = torch.sigmoid(x)\nprint(y)",
    "\ny += 1\ny.sum().backward()",
)
IN_A_CELL = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 3
      1
      2 y += 1
----> 3 y.sum().backward()

RuntimeError: one of the variables needed for gradient computation has been modified by an inplace \
operation: [torch.FloatTensor [3]], which is output 0 of SigmoidBackward0, is at version 1; expected \
version 0 instead. Hint: enable anomaly detection to find the operation
"""


def _notebook() -> None:
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "source": text, "execution_count": None, "outputs": []}
        for text in CELLS
    ]
    whole = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    Path("lesson.ipynb").write_text(json.dumps(whole))


def test_places_in_a_notebook_are_a_cell_and_a_line_in_it() -> None:
    _notebook()
    told = why("-", "lesson.ipynb", stdin=IN_A_CELL).stdout
    assert "raised at: lesson.ipynb:cell 3:3  y.sum().backward()\n" in told
    assert "1. lesson.ipynb:cell 3:2 GF101" in told
    assert "    2 | y += 1" in told
    assert "in lesson.ipynb:cell 2\n    1 | y = torch.sigmoid(x)   <- saved here\n" in told
    assert "agrees: it ends at line 3 of cell 3, where it failed" in told
    assert "+++ b/lesson.ipynb:cell 3" in told and "  -y += 1\n  +y = y + 1\n" in told


def test_json_names_the_cell_of_a_notebook() -> None:
    _notebook()
    told = json.loads(why("-", "lesson.ipynb", "--output-format", "json", stdin=IN_A_CELL).stdout)
    culprit, frame = told["culprits"][0], told["frames"][-1]
    assert (culprit["filename"], culprit["cell"], culprit["location"]) == (
        "lesson.ipynb", 3, {"row": 2, "column": 1},
    )  # fmt: skip
    assert (frame["cell"], frame["row"]) == (3, 3)
    assert (
        json.loads(why("trace.txt", "train.py", "--output-format", "json").stdout)["frames"][0]["cell"]
        is None
    )
