"""`gradfix run` does what the settings say: it tells of what `gradfix` would list, and mends it alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradfix.cli import main

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_server")]

HEAD = """import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""
MANY = HEAD + "model(x).backward()\n"
LEGAL = HEAD + "h = model(x) * 2\nh += 1\nh.sum().backward()\n"
CUT = (
    HEAD
    + """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(x).sum().detach()
loss.requires_grad_(True)
loss.backward()
"""
)
LIST = (
    HEAD
    + """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 1)]
        self.head = nn.Linear(1, 1)

    def forward(self, x):
        return self.head(self.layers[0](x))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
"""
)
DRIVER = HEAD + "import blocks\nblocks.Block()(x).sum().backward()\n"
BLOCKS = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, doubled=False):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.doubled = doubled

    def forward(self, x):
        out = torch.relu(self.fc(x))
        if self.doubled:
            out *= 2
        out += x
        return out
"""
MET = ["out = out + x"]
BOTH = ["out = out * 2", *MET]


def gradfix(folder: Path, *words: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, [*words], prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def project(folder: Path, program: str, settings: str = "") -> Path:
    """A program with the settings of its project."""
    (folder / "train.py").write_text(program)
    (folder / "pyproject.toml").write_text(f"[tool.gradfix]\n{settings}")
    return folder


def codes(said: str) -> list[str]:
    """The findings that a listing shows, as line and code."""
    return [f"{line} {code}" for line, code in re.findall(r"\.py:(\d+):\d+ (GF\d+) \[", said)]


def changed(said: str) -> list[str]:
    """The lines that a diff adds."""
    return [line[1:].strip() for line in said.splitlines() if line.startswith("+") and line[1:2] != "+"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param('ignore = ["GF301"]', id="ignore, by code"),
        pytest.param('ignore = ["non_scalar_backward"]', id="ignore, by name"),
        pytest.param('select = ["GF1"]', id="select of others"),
        pytest.param('[tool.gradfix.per-file-ignores]\n"train.py" = ["GF3"]', id="per-file-ignores"),
    ],
)
def test_a_crash_of_a_rule_that_is_not_wanted_is_no_finding_and_no_success(
    settings: str, tmp_path: Path
) -> None:
    project(tmp_path, MANY, settings)
    assert gradfix(tmp_path, "train.py").stdout == ""
    done = gradfix(tmp_path, "run", "--apply", "train.py")
    assert (codes(done.stdout), done.exit_code) == ([], 2)
    assert "the program failed (RuntimeError" in done.stdout and "gradients flow" not in done.stdout
    assert (tmp_path / "train.py").read_text() == MANY


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param('ignore = ["GF1"]', id="ignore of others"),
        pytest.param('select = ["GF3"]', id="select"),
        pytest.param(
            '[tool.gradfix.per-file-ignores]\n"other.py" = ["GF3"]', id="per-file-ignores of others"
        ),
    ],
)
def test_a_rule_that_is_wanted_is_told(settings: str, tmp_path: Path) -> None:
    done = gradfix(project(tmp_path, MANY, settings), "run", "train.py")
    assert (codes(done.stdout), done.exit_code) == (["5 GF301"], 1)


def test_what_trains_wrong_and_is_ignored_leaves_a_program_whose_gradients_flow(tmp_path: Path) -> None:
    done = gradfix(project(tmp_path, LIST, 'ignore = ["GF210", "GF208"]'), "run", "train.py")
    assert (codes(done.stdout), done.exit_code) == ([], 0)


def test_a_program_without_a_gradient_is_no_success_where_the_reason_is_ignored(tmp_path: Path) -> None:
    done = gradfix(project(tmp_path, CUT, 'ignore = ["GF2"]'), "run", "train.py")
    assert (codes(done.stdout), done.exit_code) == ([], 2)
    assert "no gradient arrived, and why is silenced" in done.stdout


def test_what_a_comment_silences_is_no_finding(tmp_path: Path) -> None:
    body = LIST.replace("[nn.Linear(4, 1)]", "[nn.Linear(4, 1)]  # gradfix: ignore[GF210]")
    done = gradfix(project(tmp_path, body), "run", "train.py")
    assert (codes(done.stdout), done.exit_code) == ([], 0)


@pytest.mark.parametrize(
    ("settings", "words", "found"),
    [
        pytest.param("", [], [], id="not by default"),
        pytest.param('extend-select = ["GF102"]', [], ["6 GF102"], id="extend-select"),
        pytest.param("", ["--style"], ["6 GF102"], id="on demand"),
        pytest.param('ignore = ["GF102"]', ["--style"], [], id="not against an ignore"),
    ],
)
def test_what_is_legal_is_told_where_its_rule_is_selected(
    settings: str, words: list[str], found: list[str], tmp_path: Path
) -> None:
    done = gradfix(project(tmp_path, LEGAL, settings), "run", *words, "train.py")
    assert (codes(done.stdout), done.exit_code) == (found, int(bool(found)))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_rewrite_reduces_as_the_settings_say(reduction: str, tmp_path: Path) -> None:
    project(tmp_path, MANY, f'reduction = "{reduction}"')
    mended = [f"model(x).{reduction}().backward()"]
    assert changed(gradfix(tmp_path, "--diff", "train.py").stdout) == mended
    assert changed(gradfix(tmp_path, "run", "--diff", "train.py").stdout) == mended


@pytest.mark.parametrize(
    ("settings", "words", "rewritten"),
    [
        pytest.param("", [], False, id="not by default"),
        pytest.param("unsafe-fixes = true", [], True, id="by the settings"),
        pytest.param("unsafe-fixes = true", ["--no-unsafe-fixes"], False, id="not against the command line"),
        pytest.param("", ["--unsafe-fixes"], True, id="by the command line"),
    ],
)
def test_an_unsafe_fix_is_made_on_demand(
    settings: str, words: list[str], rewritten: bool, tmp_path: Path
) -> None:
    done = gradfix(project(tmp_path, LIST, settings), "run", "--diff", *words, "train.py")
    assert codes(done.stdout) == ["10 GF210"]
    assert changed(done.stdout) == (["self.layers = nn.ModuleList([nn.Linear(4, 1)])"] if rewritten else [])


@pytest.mark.parametrize(
    ("settings", "found", "mended"),
    [
        pytest.param("", ["14 GF101", "15 GF101"], BOTH, id="all of it by default"),
        pytest.param('min-certainty = "certain"', ["15 GF101"], MET, id="as is to be listed"),
        pytest.param('fix-certainty = "certain"', ["14 GF101", "15 GF101"], MET, id="as is to be rewritten"),
    ],
)
def test_what_the_run_has_met_is_certain_and_the_rest_as_sure_as_the_settings_ask(
    settings: str, found: list[str], mended: list[str], tmp_path: Path
) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS)
    said = gradfix(project(tmp_path, DRIVER, settings), "run", "--diff", "train.py").stdout
    assert (codes(said), changed(said)) == (found, mended)
    assert "blocks.py:15:9 GF101 [crashes, certain, safe fix]" in said


def test_the_settings_are_those_of_the_program_and_not_of_the_working_directory(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    project(folder, MANY, 'ignore = ["GF301"]')
    assert codes(gradfix(tmp_path, "run", "project/train.py").stdout) == []


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    done = gradfix(project(tmp_path, MANY, 'ignore = ["GF3O1"]'), "run", "train.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "ignore: 'GF3O1' names no rule; did you mean GF301?" in done.stderr


def test_a_file_that_cannot_be_written_is_named_and_nothing_counts_as_mended(tmp_path: Path) -> None:
    project(tmp_path, MANY)
    meanwhile = "open(__file__, 'a').write('# later\\n')\n"
    (tmp_path / "train.py").write_text(meanwhile + MANY)
    done = gradfix(tmp_path, "run", "--apply", "--allow-writes", "train.py")
    assert "train.py: failed (write): changed on disk since it was read; left as it is" in done.stdout
    assert "written: " not in done.stdout
    assert "model(x).backward()\n" in (tmp_path / "train.py").read_text()
