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
