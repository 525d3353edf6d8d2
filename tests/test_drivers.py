"""Code whose script is cut off: what is left of it, and what is said of a few fixtures then."""

from __future__ import annotations

from pathlib import Path

import pytest
from drivers import cutoff, stops
from drivers.cutting import library

SCRIPT = """import sys
import torch
from torch import nn

sys.modules["frame"] = stand_in = type(sys)("frame")
stand_in.Base = nn.Module
WIDTH = 4
UNUSED = 5
SIZES = [WIDTH]


@torch.no_grad()
def measured(x):
    return x * SIZES[0]


class Net(nn.Module):
    def forward(self, x):
        return x


net = Net()
print(measured(net(torch.ones(2))))
"""


def test_a_script_without_its_driver_keeps_definitions_and_what_they_need() -> None:
    kept = library(SCRIPT)
    assert "@torch.no_grad()\ndef measured" in kept
    assert "class Net" in kept and "WIDTH = 4" in kept and "SIZES" in kept and "stand_in.Base" in kept
    assert "UNUSED" not in kept and "net = Net()" not in kept and "print" not in kept
    compile(kept, "kept.py", "exec")


def test_a_script_that_defines_nothing_leaves_nothing() -> None:
    assert library("import torch\nx = torch.ones(3)\n") == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("call: RuntimeError: size of tensor a (3) at 1", "call: RuntimeError: size of tensor a (136) at 0"),
        ("build: TypeError: 'int' object is not callable", "build: TypeError: 'Open' object is not callable"),
    ],
)
def test_stops_that_differ_in_names_and_numbers_are_one(one: str, other: str) -> None:
    ((reason, places),) = stops.grouped([("a", one), ("b", other)])
    assert len(places) == 2 and reason.startswith(one[:12])


def test_stops_by_a_missing_import_keep_its_name() -> None:
    text = "ModuleNotFoundError: No module named 'dgl'"
    assert "dgl" in stops.group(text)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("rule", "every", "share"), [("inplace_overwrites_saved", 3, 0.7), ("step_before_backward", 2, 0.5)]
)
def test_fixtures_without_their_drivers_are_proved_all_the_same(
    rule: str, every: int, share: float, tmp_path: Path
) -> None:
    found = list(cutoff.said("before", tmp_path, only=rule, every=every))
    words = [one.word in cutoff.SEEN for one in found]
    assert words.count(True) >= share * len(words), found


@pytest.mark.torch
@pytest.mark.parametrize("rule", ["inplace_module", "unregistered_parameters"])
def test_healthy_fixtures_without_their_drivers_are_not_called_broken(rule: str, tmp_path: Path) -> None:
    found = list(cutoff.said("keep", tmp_path, only=rule))
    assert [one for one in found if one.word in cutoff.SEEN and not one.listed] == []
