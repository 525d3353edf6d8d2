"""`--verify` where nothing runs the lines: gradfix writes a driver, and the judge goes by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradfix.cli import main

pytestmark = pytest.mark.torch

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.first = nn.Linear(width, 20)
        self.second = nn.Linear(20, classes)

    def forward(self, x):
        h = torch.sigmoid(self.first(x))
        h += 1
        return self.second(h)
"""


def said(folder: Path, text: str, *options: str) -> str:
    """What `--verify` says of a library file."""
    (folder / "net.py").write_text(text)
    return CliRunner().invoke(main, ["--verify", "--diff", *options, str(folder / "net.py")]).output


def test_a_library_file_gets_a_driver_and_the_fix_is_proved_by_it(tmp_path: Path) -> None:
    told = said(tmp_path, NET)
    assert "net.py: flows (seen before: inplace_overwrites_saved, net.py line 13; gone after" in told
    assert "; by a driver: Net(width=16, classes=24)(torch.randn(2, 16))" in told
    assert [each.name for each in tmp_path.glob("*.py")] == ["net.py"]


def test_a_run_that_backpropagates_nothing_leaves_it_to_a_driver(tmp_path: Path) -> None:
    told = said(tmp_path, f"{NET}\n\nprint(Net(4, 2)(torch.ones(1, 4)).shape)\n")
    assert "net.py: flows (seen before: inplace_overwrites_saved, net.py line 13; gone after" in told
    assert "by a driver" in told


def test_a_package_that_is_not_installed_is_stood_in_for_and_the_verdict_says_so(tmp_path: Path) -> None:
    told = said(tmp_path, f"import nowhere.at_all\n{NET}")
    assert "net.py: flows" in told
    assert "; no more than likely, without nowhere, nowhere.at_all (not installed))" in told


SUSPECT = """\
import torch
from torch import nn
from nowhere import show


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 1)]

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def made(optimizers):
    net = Net()
    optimizers.show(net)
    return net
"""


def test_what_nothing_is_written_for_is_seen_under_torch(tmp_path: Path) -> None:
    told = said(tmp_path, SUSPECT, "--suspects")
    assert "net.py:9: unregistered_parameters: seen under torch (seen: unregistered_parameters" in told


HEALTHY = NET.replace("        h += 1\n", "        h = h + 1\n")


def test_nothing_is_said_of_what_nothing_is_found_in(tmp_path: Path) -> None:
    assert "driver" not in said(tmp_path, HEALTHY, "--suspects")


KEPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 1)]

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x
"""


@pytest.mark.parametrize(
    ("user", "word"),
    [
        ("", "undecided"),
        ("from net import Net\n\nnet = Net()\n", "seen under torch"),
        ("from net import Net\n\nfor layer in Net().layers:\n    layer.weight.data -= 1\n", "undecided"),
    ],
)
def test_who_steps_is_known_from_the_project_alone(tmp_path: Path, user: str, word: str) -> None:
    if user:
        (tmp_path / "user.py").write_text(user)
    assert f"unregistered_parameters: {word} (" in said(tmp_path, KEPT, "--suspects").replace(
        "net.py: ", "unregistered_parameters: "
    )
