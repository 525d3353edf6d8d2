"""Several cuts in a row: none of them alone brings a gradient when it goes, so none is taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan

NET = """import torch
from torch import nn

net = nn.Linear(2, 3)
x = torch.ones(4, 2)
"""
UNRECORDED = "with torch.no_grad():\n    y = net(x)\n"
LISTED = """values = []
for row in x:
{cut}
    values.append(value.item())
values = torch.FloatTensor(values)
values{detach}.mean().backward()
"""
HIDDEN = "    with torch.no_grad():\n        value = net(row).mean()"
SEEN = "    value = net(row).mean()"


def outcome(body: str, unsafe: bool = False) -> Outcome:
    return fix("program.py", (NET + body).encode(), Plan(Config(Path(), unsafe_fixes=unsafe)))


@pytest.mark.parametrize(
    ("body", "rule", "culprit"),
    [
        pytest.param(
            LISTED.format(cut=HIDDEN, detach=".detach()"), "forward_in_no_grad", 8, id="a list of numbers"
        ),
        pytest.param(
            LISTED.format(cut=HIDDEN, detach=""), "forward_in_no_grad", 8, id="numbers and no detach"
        ),
        pytest.param(
            LISTED.format(cut=SEEN, detach=".detach()"), "converted_loss_path", 10, id="numbers and no mode"
        ),
        pytest.param(
            UNRECORDED + "y.detach().mean().backward()\n", "forward_in_no_grad", 6, id="a mode, then a detach"
        ),
        pytest.param(
            "with torch.no_grad():\n    y = net(x).detach()\ny.mean().backward()\n",
            "forward_in_no_grad",
            6,
            id="a detach in a mode",
        ),
        pytest.param(
            "y = net(x).detach()\nz = y.exp().detach()\nz.mean().backward()\n",
            "detached_loss_path",
            6,
            id="two that are detached",
        ),
        pytest.param(
            "y = net(x).detach()\ntorch.tensor(y.mean().item()).backward()\n",
            "detached_loss_path",
            6,
            id="a detach, then a number",
        ),
        pytest.param(
            "y = net(x).argmax(1).float().mean().item()\ntorch.tensor(y).backward()\n",
            "non_differentiable_loss",
            6,
            id="a choice, then a number",
        ),
        pytest.param(
            "a = net(x).mean().item()\nb = net(x).detach()\n"
            "c = (torch.tensor(a) + b).detach()\nc.mean().backward()\n",
            "detached_loss_path",
            8,
            id="what two others stand behind",
        ),
    ],
)
@pytest.mark.parametrize("unsafe", [False, True])
def test_of_several_cuts_in_a_row_none_is_taken_out(body: str, rule: str, culprit: int, unsafe: bool) -> None:
    seen = outcome(body, unsafe)
    assert [(one.rule, one.span.line) for one in seen.findings] == [(rule, culprit)]
    assert seen.after is None and seen.findings[0].decline


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param(UNRECORDED + "y.mean().backward()\n", "y = net(x)\ny.mean().backward()\n", id="a mode"),
        pytest.param(
            UNRECORDED + "z = y.exp().detach() + net(x)\nz = z.detach()\nz.mean().backward()\n",
            UNRECORDED + "z = y.exp().detach() + net(x)\nz.mean().backward()\n",
            id="a detach that has a graph behind it beside a row of others",
        ),
        pytest.param(
            "y = net(x).mean().detach()\ny.backward()\n",
            "y = net(x).mean()\ny.backward()\n",
            id="a detach",
        ),
        pytest.param(
            "y = net(x).mean().data.detach()\ny.backward()\n",
            "y = net(x).mean()\ny.backward()\n",
            id="two in one expression",
        ),
        pytest.param(
            "y = net(x).mean().detach().item()\ntorch.tensor(y).backward()\n",
            "y = net(x).mean()\ny.backward()\n",
            id="there and back",
        ),
        pytest.param(
            LISTED.format(cut=SEEN, detach=""),
            LISTED.format(cut=SEEN, detach="").replace(".item()", "").replace("FloatTensor", "stack"),
            id="a list of numbers there and back",
        ),
    ],
)
def test_a_cut_that_alone_keeps_the_gradient_back_is_taken_out(body: str, after: str) -> None:
    seen = outcome(body)
    assert seen.after is not None and seen.after.decode().removeprefix(NET) == after
    assert seen.remaining == ()
