"""Packages that aren't installed: bars of progress go round, frameworks have modules, writers are silent."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from test_driver_search import functions

from gradfix.cli import main
from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver, Recipe, Undriven
from gradfix.verify import Launcher

pytestmark = pytest.mark.torch

TEXT = """\
import absent_framework as framework
import torch
import torch.nn.functional as F
from absent_bars import bar
from absent_writers.inner import Writer, dressed
from torch import nn


class Net(framework.FrameworkModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.fc = nn.Linear(self.hparams.width, 1)

    def training_step(self, batch, number):
        x, y = batch
        loss = F.mse_loss(self.fc(x).detach(), y)
        self.log("loss", loss)
        return loss


@dressed("so")
def wide(net: nn.Linear, x: torch.Tensor):
    return net(x)


def train(net, loader, optimizer):
    writer = Writer("runs")
    for epoch in bar(range(2)):
        for x, y in loader:
            loss = F.mse_loss(net(x).detach(), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        writer.add_scalar("loss", loss.item(), epoch)
"""


def recipe(one: Driver | Undriven) -> Recipe:
    assert isinstance(one, Driver), one
    return one.recipe


ABSENT = ("absent_framework", "absent_bars", "absent_writers", "absent_writers.inner")


def test_what_leans_on_absent_packages_is_confirmed_and_no_more_than_likely(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text(TEXT)
    said = CliRunner().invoke(main, ["--verify", str(tmp_path / "lib.py")]).output
    assert "flows (seen before: detached_loss_path" in said
    assert f"no more than likely, without {', '.join(ABSENT)} (not installed)" in said


def test_classes_and_functions_that_absent_packages_have_a_hand_in_are_called(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text(TEXT)
    with Launcher() as launcher:
        step, wide, train = Maker(launcher).made(functions(tmp_path / "lib.py"))
    for one in (step, wide, train):
        assert isinstance(one, Driver)
        assert one.recipe.stood == ABSENT
    assert isinstance(step, Driver)
    assert any("logs nothing" in one for one in step.recipe.assumed)
    assert "net.training_step(" in step.text


def test_a_module_whose_framework_is_there_steps_without_its_trainer(tmp_path: Path) -> None:
    (tmp_path / "framework.py").write_text(
        "from torch import nn\n\n\nclass LightningModule(nn.Module):\n"
        "    def optimizers(self):\n        raise RuntimeError('no trainer')\n\n    manual_backward = log"
        " = optimizers\n"
    )
    (tmp_path / "lib.py").write_text(
        "import torch\nfrom framework import LightningModule\nfrom torch import nn\n\n\n"
        "class Net(LightningModule):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(8, 1)\n\n    def training_step(self, batch: torch.Tensor):\n"
        "        optimizer = self.optimizers()\n        optimizer.zero_grad()\n"
        "        loss = self.fc(batch).mean()\n        self.manual_backward(loss)\n        optimizer.step()\n"
        "        self.log('loss', loss)\n\n    def configure_optimizers(self):\n"
        "        return [torch.optim.SGD(self.parameters(), lr=0.1)], []\n"
    )
    with Launcher() as launcher:
        found = map(recipe, Maker(launcher).made(functions(tmp_path / "lib.py")))
        made = {one.target.method: one for one in found}
    assert made["training_step"].framed
    assert any("steps by hand" in one for one in made["training_step"].assumed)
