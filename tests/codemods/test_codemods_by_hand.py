"""What is said where nothing is rewritten: what to do in the case at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

TRAINS = """import torch
from torch import nn

net, words = nn.Linear(4, 3), nn.Embedding(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(5, 4), torch.zeros(5).long()
{loss}
opt.zero_grad()
loss.backward()
opt.step()
"""


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        pytest.param(
            "_, pred = torch.max(net(x), 1)\n"
            "loss = 1 - (pred == y).float().mean()\nloss.requires_grad = True",
            "remove it; an accuracy only measures: let the loss be "
            "torch.nn.functional.cross_entropy(net(x), y)",
            id="an accuracy that is told to require grad",
        ),
        pytest.param(
            "loss = words(net(x).softmax(-1).multinomial(1)[:, 0]).mean()",
            "an index that is drawn passes no gradient on: use torch.nn.functional.gumbel_softmax(logits, "
            "hard=True) times what it chooses from, or learn from the log probability of what was drawn",
            id="an index that is drawn",
        ),
        pytest.param(
            "loss = torch.argsort(net(x)[:, 0]).float().mean()",
            "take it from the sorted values, which torch.sort returns with a gradient: their order has none",
            id="an order",
        ),
    ],
)
def test_the_advice_is_about_the_case_at_hand(loss: str, told: str) -> None:
    outcome = fix("program.py", TRAINS.format(loss=loss).encode(), Plan(Config(Path(), unsafe_fixes=True)))
    assert outcome.after is None
    assert [one.decline for one in outcome.findings] == [told]
