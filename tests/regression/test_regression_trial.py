"""Only a test that fails on the text before and passes on the text after is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.driver.recipe import Recipe, Target
from gradfix.driver.values import Argument, Number, Tensor
from gradfix.regression.mended import Kept, Mended, Unkept
from gradfix.regression.trial import Bench
from gradfix.verify import Launcher, Limits

pytestmark = pytest.mark.torch

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Linear(d, d)
        self.b = nn.Linear(d, d)

    def forward(self, x):
        y = self.a(x).exp()
        y = y + 1
        return self.b(y)
"""
STATEMENT, LAYER, CALL = "y = y + 1", "self.b = nn.Linear(d, d)", "self.b(y)"
LISTED = NET.replace(CALL, "self.b[0](y)")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def tried(launcher: Launcher, folder: Path, before: str, after: str) -> Kept | Unkept:
    path = str(folder / "net.py")
    target = Target(path, str(folder), "net", "Net", "module", line=5)
    inputs = (Argument("x", Tensor((2, 4)), False),)
    recipe = Recipe(target, (Argument("d", Number(4), False),), inputs)
    mended = Mended(path, "net.py", "GF101", 13, "it is wrong", before.encode(), after.encode())
    return Bench(launcher, Limits()).kept(mended, recipe)


@pytest.mark.parametrize(
    ("before", "after", "name", "failure"),
    [
        pytest.param(
            NET.replace(STATEMENT, "y += 1"), NET, "test_backward_through_net_runs", "RuntimeError",
            id="a backward that failed",
        ),
        pytest.param(
            NET.replace(STATEMENT, "y = y.detach() + 1"), NET, "test_gradients_reach_all_of_net",
            "AssertionError", id="a gradient that was cut off",
        ),
        pytest.param(
            LISTED.replace(LAYER, "self.b = [nn.Linear(d, d)]"),
            LISTED.replace(LAYER, "self.b = nn.ModuleList([nn.Linear(d, d)])"),
            "test_net_registers_b", "AssertionError", id="a layer in a plain list",
        ),
    ],
)  # fmt: skip
def test_what_was_mended_is_kept_so(
    launcher: Launcher, tmp_path: Path, before: str, after: str, name: str, failure: str
) -> None:
    found = tried(launcher, tmp_path, before, after)
    assert isinstance(found, Kept), found
    assert found.piece.name == name
    assert found.failure.startswith(failure)
    assert not any("gradfix" in line for line in (*found.piece.imports, *found.piece.lines))


AGENT = """import torch
from torch import nn


class Agent:
    def __init__(self, d):
        self.net = nn.Linear(d, d)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self, x):
        loss = self.net(x).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
CLEAR, BACK = "        self.optimizer.zero_grad()\n", "        loss.backward()\n"


@pytest.mark.parametrize(
    ("before", "name"),
    [
        pytest.param(AGENT.replace(CLEAR, ""), "test_agent_update_clears_gradients", id="nobody clears"),
        pytest.param(
            AGENT.replace(CLEAR + BACK, BACK + CLEAR), "test_agent_update_moves_the_weights", id="too late"
        ),
    ],
)
def test_an_update_that_was_mended_is_kept_so(
    launcher: Launcher, tmp_path: Path, before: str, name: str
) -> None:
    path = str(tmp_path / "net.py")
    target = Target(path, str(tmp_path), "net", "Agent", "method", "update", 5)
    build, inputs = (Argument("d", Number(4), False),), (Argument("x", Tensor((2, 4)), False),)
    recipe = Recipe(target, build, inputs, roots=(), learns=False)
    mended = Mended(path, "net.py", "GF401", 12, "it is wrong", before.encode(), AGENT.encode())
    found = Bench(launcher, Limits()).kept(mended, recipe)
    assert isinstance(found, Kept), found
    assert found.piece.name == name
    assert found.failure == "AssertionError"
    assert max(map(len, found.piece.lines)) <= 88


def test_what_changes_nothing_that_can_be_seen_leaves_no_test(launcher: Launcher, tmp_path: Path) -> None:
    found = tried(launcher, tmp_path, NET, NET.replace(STATEMENT, "y = 1 + y"))
    assert isinstance(found, Unkept)


def test_what_does_not_run_after_leaves_no_test(launcher: Launcher, tmp_path: Path) -> None:
    found = tried(launcher, tmp_path, NET.replace(STATEMENT, "y += 1"), "import missing_package\n" + NET)
    assert isinstance(found, Unkept)
    assert "missing_package" in found.reason
