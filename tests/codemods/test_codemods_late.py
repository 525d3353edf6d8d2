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


MADE = "    seen = torch.ones(3)\n"
LOOKS = CLAMP + "        print(seen.sum())\n"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("    seen.zero_()\n", id="in place"),
        pytest.param("    seen[0] = 2\n", id="in a part"),
        pytest.param("    spoil(seen)\n", id="by a function"),
    ],
)
def test_a_change_that_looks_at_what_changes_in_between_moves_only_if_asked(change: str) -> None:
    function = "def spoil(t):\n    t.zero_()\n"
    moved = MADE + CLEAR + BUILT + change + BACKWARD + LOOKS + STEP
    body = MADE + CLEAR + BUILT + LOOKS + change + BACKWARD + STEP
    found = {}
    for unsafe in (False, True):
        outcome = fix(
            "program.py",
            NET.replace("for x", function + "for x").encode() + body.encode(),
            Plan(Config(Path(), unsafe_fixes=unsafe)),
        )
        found[unsafe] = outcome.after
    assert found[False] is None
    assert (found[True] or b"").decode().endswith(moved)


def test_a_change_whose_result_goes_into_the_loss_stays() -> None:
    assert mended(CLEAR + BUILT + USED + BACKWARD + STEP, unsafe=True) is None


BODY = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
"""
TUNED = """opt = torch.optim.SGD({trained}, lr=0.1)
opt.zero_grad()
net(torch.ones(2, 3)).pow(2).mean().backward()
opt.step()
"""
FROZEN = "for p in net.parameters():\n    p.requires_grad = False\n"


@pytest.mark.parametrize(
    ("made", "trained"),
    [
        pytest.param("net[2] = nn.Linear(4, 2)\n", "net.parameters()", id="the whole model was to learn"),
        pytest.param(
            "head = nn.Linear(4, 2)\nnet[2] = head\n", "head.parameters()", id="made before it is put in"
        ),
        pytest.param(
            "net[2] = nn.Linear(4, 2)\nnet = nn.Sequential(net, nn.Tanh())\n",
            "net[0][2].parameters()",
            id="what is frozen has another name by then",
        ),
    ],
)
def test_what_freezes_a_model_stays_where_nothing_says_what_was_to_learn(made: str, trained: str) -> None:
    text = BODY + made + FROZEN + TUNED.format(trained=trained)
    outcome = fix("program.py", text.encode(), Plan(Config(Path(), unsafe_fixes=True)))
    assert [one.code for one in outcome.findings] == ["GF204"]
    assert outcome.after is None


COUNTED = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
count = 0
for x in torch.ones(4, 4, 3):
    loss = net(x).pow(2).mean() / 2
    opt.step()
    loss.backward()
    count += 1
    if count % 2 == 0:
        opt.step()
        opt.zero_grad()
"""


def test_a_step_that_another_one_repeats_behind_its_backward_goes_only_if_asked() -> None:
    asked, unasked = (
        fix("program.py", COUNTED.encode(), Plan(Config(Path(), unsafe_fixes=unsafe))).after
        for unsafe in (True, False)
    )
    assert unasked is None
    assert asked is not None and asked.decode() == COUNTED.replace("    opt.step()\n    loss", "    loss", 1)
