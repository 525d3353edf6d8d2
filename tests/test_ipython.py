"""`%load_ext gradfix` in a real IPython: `%gradfix` reads what was run, `%%gradfix` watches a cell."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.ipython import found
from gradfix.plan import plan_for

shells = pytest.importorskip("IPython.core.interactiveshell")
Play = Callable[..., str]

COLOUR = re.compile(r"\x1b\[[\d;]*m")
MODEL = """\
import torch
from torch import nn
model = nn.Linear(4, 3)
opt = torch.optim.SGD(model.parameters(), 0.1)"""
BROKEN = "h = torch.sigmoid(model(torch.ones(2, 4)))\nh += 1\nh.sum().backward()"
LOOP = "for _ in range(2):\n    opt.zero_grad()\n    model(torch.ones(2, 4)).sum().backward()\n    opt.step()"


@pytest.fixture
def play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Play]:
    """Run cells in a fresh shell, the first of which loads the extension; what the last one prints."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shells.InteractiveShell.clear_instance()
    shell = shells.InteractiveShell.instance()
    shell.history_manager.enabled = False

    def played(*cells: str) -> str:
        for cell in ("%load_ext gradfix", *cells):
            capsys.readouterr()
            shell.run_cell(cell, store_history=True)
        return COLOUR.sub("", capsys.readouterr().out)

    yield played
    shells.InteractiveShell.clear_instance()


def places(*cells: str) -> list[tuple[int | None, int]]:
    """Cell and line of what is found in a session of these cells."""
    outcome = found(["", *cells], plan_for(Config(Path.cwd())))
    assert outcome.failure is None
    return [outcome.at(finding.span.line) for finding in outcome.findings]


def test_findings_have_the_numbers_that_the_session_gave_to_the_cells() -> None:
    assert places("%load_ext gradfix", MODEL, BROKEN, "%gradfix") == [(3, 2)]


def test_a_cell_that_is_run_again_counts_where_it_was_run_last() -> None:
    assert places(MODEL, "loss = model(torch.ones(2, 4)).sum()", "loss.backward()", "loss.backward()") == []
    assert places(MODEL, BROKEN, MODEL, BROKEN) == [(4, 2)]


def test_a_cell_that_is_no_python_was_never_run() -> None:
    assert places(MODEL, "def f(:", BROKEN) == [(3, 2)]


@pytest.mark.torch
def test_gradfix_lists_what_is_found_in_the_cells_that_were_run(play: Play) -> None:
    assert play(MODEL, LOOP, "%gradfix") == "gradfix: nothing found in the cells that were run\n"
    said = play(BROKEN, "%gradfix")
    assert said.startswith("session.ipynb:cell 6:2:1 GF101 [crashes, certain, safe fix]")
    assert "    1 | h = torch.sigmoid(model(torch.ones(2, 4)))   <- saved here\n" in said


@pytest.mark.torch
def test_of_a_cell_that_was_edited_and_run_again_the_last_text_counts(play: Play) -> None:
    shell = shells.InteractiveShell.instance()
    play(MODEL)
    for text in (BROKEN, BROKEN.replace("h += 1", "h = h + 1")):
        shell.run_cell(text, store_history=True, cell_id="broken")
    assert play("%gradfix") == "gradfix: nothing found in the cells that were run\n"


@pytest.mark.torch
def test_a_watched_cell_ends_with_a_verdict(play: Play) -> None:
    assert play(MODEL, f"%%gradfix\n{LOOP}") == "gradfix: gradients flow: 2 leaves reached\n"


@pytest.mark.torch
def test_a_watched_cell_that_fails_is_explained_by_its_own_lines(play: Play) -> None:
    said = play(MODEL, f"%%gradfix\n{BROKEN}")
    assert ":3: inplace_overwrites_saved\n" in said
    assert ":2: h = torch.sigmoid(model(torch.ones(2, 4)))   <- sigmoid saved it here\n" in said
    assert "Cell In[3], line 4" in said
    assert "UsageError" not in said


@pytest.mark.torch
def test_a_watched_cell_names_what_gets_no_gradient_of_what_it_is_told(play: Play) -> None:
    said = play(MODEL, "other = nn.Linear(1, 1)", f"%%gradfix model other\n{LOOP}")
    assert said.splitlines() == [
        "gradfix: no gradient: weight (never called)",
        "gradfix: no gradient: bias (never called)",
    ]


@pytest.mark.torch
def test_a_watched_cell_of_an_unknown_name_is_refused(play: Play) -> None:
    assert "nothing is called nobody before this cell" in play(MODEL, f"%%gradfix nobody\n{LOOP}")


@pytest.mark.torch
def test_a_watched_cell_leaves_its_names_behind_and_goes_on_under_other_magics(play: Play) -> None:
    assert play(
        MODEL, "%%gradfix\n%%capture\nleft = model(torch.ones(1, 4))", "print(left.shape)"
    ).startswith("torch")


def test_ipython_is_imported_by_nobody_who_does_not_ask() -> None:
    ask = "import sys, gradfix.cli, gradfix.session, gradfix.ipython; print('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
