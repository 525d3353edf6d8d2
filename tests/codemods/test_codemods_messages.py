"""What a finding says of the case at hand: of what is there, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

HEAD = """import torch
from torch import nn

net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
MODULE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = {one}

    def forward(self, x):
        for each in self.one:
            x = each(x)
        return {x}


(Net()(torch.ones(1, 2)).sum() + net(torch.ones(1, 2)).sum()).backward()
opt.step()
"""


def found(body: str, code: str) -> Finding:
    outcome = fix("program.py", (HEAD + body).encode(), Plan(Config(Path(), unsafe_fixes=True)))
    every = [*outcome.applied, *outcome.remaining]
    (one,) = {finding.code: finding for finding in every if finding.code == code}.values()
    return one


SAID = {
    "a gradient that is asked to be kept where nothing is recorded": (
        "with torch.no_grad():\n    h = net(torch.ones(1, 2))\nh.retain_grad()\n",
        "GF203",
        "`h` is built under `no_grad`, so there is no graph for retain_grad()",
    ),
    "a loss that isn't recorded": (
        "with torch.no_grad():\n    loss = net(torch.ones(1, 2)).sum()\nloss.backward()\n",
        "GF203",
        "the loss is built under `no_grad`, so there is no graph for backward() to walk",
    ),
    "a result in a list, whose gradient is read": (
        "ws = [torch.ones(3, requires_grad=True) * 2]\nws[0].sum().backward()\nprint(ws[0].grad)\n",
        "GF209",
        "`ws[0]` is no leaf but the result of `torch.ones(3, requires_grad=True) * 2`, "
        "so it keeps no gradient",
    ),
    "a result without a name that an optimizer is given": (
        "opt = torch.optim.SGD([torch.ones(3, requires_grad=True) * 2], lr=0.1)\n",
        "GF209",
        "what an optimizer is given is no leaf but the result of "
        "`torch.ones(3, requires_grad=True) * 2`, so it keeps no gradient",
    ),
    "a plain tuple": (
        MODULE.format(one="(nn.Linear(2, 2), nn.Linear(2, 2))", x="x"),
        "GF210",
        "`one` is not registered: a module sees parameters and modules, not a plain tuple",
    ),
    "a plain list": (
        MODULE.format(one="[nn.Linear(2, 2), nn.Linear(2, 2)]", x="x"),
        "GF210",
        "`one` is not registered: a module sees parameters and modules, not a plain list",
    ),
}


@pytest.mark.parametrize(("body", "code", "message"), SAID.values(), ids=SAID.keys())
def test_a_message_names_what_is_there(body: str, code: str, message: str) -> None:
    assert found(body, code).message == message


ENTERED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = {one}

    def forward(self, x):
        y = x.clone()
        y += 1
        return {x}


Net()
"""


@pytest.mark.parametrize(
    ("one", "x", "impact"),
    [
        ("nn.Linear(2, 2),", "self.one(x)", "crashes"),
        ("[nn.Linear(2, 2)]", "self.one(x)", "crashes"),
        ("[nn.Linear(2, 2)]", "self.one[0](x)", "trains wrong"),
    ],
)
def test_a_plain_container_that_is_called_crashes(one: str, x: str, impact: str) -> None:
    source = parse("program.py", (HEAD + ENTERED.format(one=one, x=x)).encode())
    assert isinstance(source, Source)
    assert [one.impact for one in analyse(source).defects if one.impact != "style"] == [impact]


CARRIED = """
from elsewhere import convert
import numpy as np
state, total = np.zeros(2), 0
deep = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
opt = torch.optim.SGD(deep.parameters(), lr=0.1)
for x in torch.ones(9, 1, 2):
    {state}
    total = total + deep(x).mean()
    total = total.sum()
    opt.zero_grad()
    total.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    "state", ["state = convert(state)", "other, state = convert(state, 1)"], ids=["alone", "of two"]
)
def test_what_the_loss_is_not_made_of_is_not_told_to_be_detached(state: str) -> None:
    said = found(CARRIED.format(state=state), "GF105")
    assert "state after" not in said.decline and "state.detach" not in said.says
