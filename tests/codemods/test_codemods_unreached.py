"""Which of several cuts keeps parameters from a loss: what is mended, and what is its target."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

PROGRAM = """import torch
from torch import nn
net, other = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
for x in torch.ones(2, 4, 3):
    {lines}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FAR = "wanted = 1 + other(x).detach() * 0.9\n    loss = "
PLACES = {
    "what a difference is taken from": (
        "loss = (net(x) - other(x).detach()).pow(2).mean()",
        "",
    ),
    "what a target is made of": (FAR + "(net(x) - wanted).pow(2).mean()", ""),
    "what the target of a loss is made of": (FAR + "nn.functional.mse_loss(net(x), wanted)", ""),
    "a weight of what learns": ("loss = (net(x).exp() * other(x).detach()).mean()", "weighs what learns"),
    "what a weight is made of": (
        "advantage = 1 - other(x).detach()\n    loss = (net(x).exp() * advantage).mean()",
        "weighs what learns",
    ),
    "a prediction that is held against a constant": (
        "loss = net(x).pow(2).mean() + (other(x).detach() - x.sum()).pow(2).mean()",
        "other(x)",
    ),
    "the prediction of the term that nothing learns from": (
        "value = other(x)\n    advantage = (1 - value).detach()\n"
        "    loss = (1 - value.detach()).pow(2).mean() - (net(x).exp() * advantage).mean()",
        "(1 - value).pow(2)",
    ),
}


@pytest.mark.parametrize(("lines", "expected"), PLACES.values(), ids=PLACES)
def test_a_cut_before_what_is_never_trained_is(lines: str, expected: str) -> None:
    """Where nothing is expected, it is done by hand; where the phrase isn't the rewrite's, it is unsafe."""
    text = PROGRAM.format(lines=lines)
    outcome = fix("case.py", text.encode(), Plan(Config(Path(), unsafe_fixes=True)))
    (found,) = [one for one in outcome.findings if one.code == "GF208"]
    if not expected:
        assert outcome.after is None
        assert "holds what it trains against this" in str(found)
        return
    assert outcome.after is not None
    assert expected in outcome.after.decode() or expected in str(found)
