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


APART = """import torch
from torch import nn

gen, dis = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
opt_d, opt_g = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (dis, gen))
fake = gen(torch.ones(3, 2))
losses = dis(fake.detach()).mean(), -dis(fake).mean()
{trained}
"""
TURNS = """for opt, loss in zip([opt_d, opt_g], losses):
    opt.zero_grad()
    loss.backward({kept})
    opt.step()"""
CALLED = """def update(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()

update(opt_d, losses[0])
update(opt_g, losses[1])"""


@pytest.mark.parametrize(
    "trained",
    [TURNS.format(kept=""), TURNS.format(kept="retain_graph=True"), CALLED],
    ids=["turns of a loop", "turns that keep the graph", "calls of one function"],
)
def test_what_was_built_before_all_steps_is_not_told_to_be_carried_on(trained: str) -> None:
    outcome = fix("program.py", APART.format(trained=trained).encode(), Plan(Config(Path())))
    (early,) = (one for one in outcome.findings if one.code == "GF105")
    assert (early.decline or "").startswith("build the later loss after this step")
