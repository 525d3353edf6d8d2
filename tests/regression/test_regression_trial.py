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
            "test_net_registers_its_parameters", "AssertionError", id="a layer in a plain list",
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


def test_what_changes_nothing_that_can_be_seen_leaves_no_test(launcher: Launcher, tmp_path: Path) -> None:
    found = tried(launcher, tmp_path, NET, NET.replace(STATEMENT, "y = 1 + y"))
    assert isinstance(found, Unkept)


def test_what_does_not_run_after_leaves_no_test(launcher: Launcher, tmp_path: Path) -> None:
    found = tried(launcher, tmp_path, NET.replace(STATEMENT, "y += 1"), "import missing_package\n" + NET)
    assert isinstance(found, Unkept)
    assert "missing_package" in found.reason
