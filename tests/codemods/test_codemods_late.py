"""Changes of parameters before the backward that needs them: what moves behind it, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

NET = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


@torch.no_grad()
def decay():
    for p in net.parameters():
        p.mul_(0.9)


for x in torch.ones(3, 4, 3):
"""
BUILT = "    loss = net(x).pow(2).mean()\n"
CLAMP = """    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-1, 1)
"""
DECAY = "    decay()\n"
CLEAR, BACKWARD, STEP = "    opt.zero_grad()\n", "    loss.backward()\n", "    opt.step()\n"


def mended(body: str, unsafe: bool = False) -> str | None:
    outcome = fix("program.py", (NET + body).encode(), Plan(Config(Path(), unsafe_fixes=unsafe)))
    return outcome.after.decode().removeprefix(NET) if outcome.after else None


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        pytest.param(
            BUILT + STEP + CLAMP + CLEAR + BACKWARD,
            BUILT + CLEAR + BACKWARD + STEP + CLAMP,
            id="what follows an early step goes where the step goes",
        ),
        pytest.param(
            BUILT + CLAMP + STEP + DECAY + CLEAR + BACKWARD,
            BUILT + CLEAR + BACKWARD + CLAMP + STEP + DECAY,
            id="what stands before an early step stays before it",
        ),
        pytest.param(
            CLEAR + BUILT + DECAY + CLAMP + BACKWARD + STEP,
            CLEAR + BUILT + BACKWARD + DECAY + CLAMP + STEP,
            id="two changes keep their order",
        ),
        pytest.param(
            CLEAR + BUILT + "    for p in net.parameters():\n        p.data.mul_(0.9)\n" + BACKWARD + STEP,
            CLEAR + BUILT + BACKWARD + "    for p in net.parameters():\n        p.data.mul_(0.9)\n" + STEP,
            id="a change through data moves with its loop",
        ),
    ],
)
def test_changes_of_parameters_go_behind_their_backward(body: str, whole: str) -> None:
    assert mended(body) == whole


OTHER = "    other = net(x).mean()\n"
USED = "    with torch.no_grad():\n        norm = net[2].weight.mul_(0.9).norm()\n    loss = loss * norm\n"


def test_a_change_that_something_between_meets_moves_only_if_asked() -> None:
    body = CLEAR + BUILT + DECAY + OTHER + BACKWARD + STEP
    assert mended(body) is None
    assert mended(body, unsafe=True) == CLEAR + BUILT + OTHER + BACKWARD + DECAY + STEP


def test_a_change_whose_result_goes_into_the_loss_stays() -> None:
    assert mended(CLEAR + BUILT + USED + BACKWARD + STEP, unsafe=True) is None
