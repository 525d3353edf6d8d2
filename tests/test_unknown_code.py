"""Healthy programs that lean on code which isn't at hand: nothing may be said about them."""

from __future__ import annotations

import pytest

from gradfix.source import Source, parse
from gradfix.tape.interpreter import analyse

IMPORTS = "import torch\nfrom torch import nn\n"
HEALTHY = {
    "a batch augmented by a strength that an earlier score tuned": """
from net import Critic, augment, tuner
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters())
for batch in stream():
    aug = augment(batch, p) if flag else batch
    score = critic(aug)
    optimizer.zero_grad()
    score.mean().backward()
    optimizer.step()
    if flag:
        p = tuner.tune(score)
    batch.requires_grad = True
    aug = augment(batch, p) if flag else batch
    score = critic(aug)
    slope, = torch.autograd.grad(score.sum(), batch, create_graph=True)
    optimizer.zero_grad()
    (slope.pow(2).mean() + 0 * score[0]).backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("body", HEALTHY.values(), ids=HEALTHY)
def test_nothing_is_said_of(body: str) -> None:
    source = parse("program.py", (IMPORTS + body).encode())
    assert isinstance(source, Source)
    shown = [d for d in analyse(source).defects if d.impact != "style"]
    assert not shown
