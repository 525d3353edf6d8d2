"""A choice among scores that goes straight through: only where it surely has the scores' shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

PROGRAM = """import torch
from torch import nn
import torch.nn.functional as F
from elsewhere import load, number
net = nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in {batches}:
    p = net(x).softmax(-1)
    {hard}
    optimizer.zero_grad()
    (hard * torch.arange(4.0)).sum().backward()
    optimizer.step()
"""
KNOWN, UNKNOWN = "torch.randn(2, 5, 3)", "load()"
THROUGH = {
    "as many as there are": (KNOWN, "hard = F.one_hot(p.argmax(-1), 4).float()"),
    "as many as it says itself": (UNKNOWN, "hard = F.one_hot(p.argmax(dim=-1), p.shape[-1])"),
    "by number of the dimension": (
        KNOWN,
        "hard = F.one_hot(torch.argmax(p, 1), num_classes=p.size(-1)).to(x)",
    ),
    "an index with a name": (
        UNKNOWN,
        "index = p.argmax(-1)\n    hard = F.one_hot(index, p.size(-1)).float()",
    ),
}
BY_HAND = {
    "one more than there are": (KNOWN, "hard = F.one_hot(p.argmax(-1), 5)[:, :4]"),
    "as many as somebody says": (KNOWN, "hard = F.one_hot(p.argmax(-1), number)"),
    "as many as there happen to be": (KNOWN, "hard = F.one_hot(p.argmax(-1))"),
    "along another dimension": (KNOWN, "hard = F.one_hot(p.argmax(0), 4)"),
    "a dimension that may not be the last": (UNKNOWN, "hard = F.one_hot(p.argmax(1), 4)"),
    "of the worst": (KNOWN, "hard = F.one_hot(p.argmin(-1), 4)"),
    "scores without a name": (KNOWN, "hard = F.one_hot(net(x).argmax(-1), 4)"),
    "an index with two names": (
        KNOWN,
        "index = p.argmax(-1)\n    index = index + 0\n    hard = F.one_hot(index, 4)",
    ),
}


def mended(batches: str, hard: str, unsafe: bool = True) -> str | None:
    text = PROGRAM.format(batches=batches, hard=hard)
    outcome = fix("case.py", text.encode(), Plan(Config(Path(), unsafe_fixes=unsafe)))
    assert {one.code for one in outcome.findings} <= {"GF205"}
    return None if outcome.after is None else outcome.after.decode()


@pytest.mark.parametrize(("batches", "hard"), THROUGH.values(), ids=THROUGH)
def test_a_choice_goes_straight_through(batches: str, hard: str) -> None:
    text = mended(batches, hard)
    assert text is not None
    assert text.count("+ (p - p.detach())\n") == 1
    assert mended(batches, hard, unsafe=False) is None


@pytest.mark.parametrize(("batches", "hard"), BY_HAND.values(), ids=BY_HAND)
def test_nothing_goes_straight_through_for(batches: str, hard: str) -> None:
    assert mended(batches, hard) is None


CODES = """import torch
from torch import nn
encoder, decoder, codes = nn.Linear(6, 3), nn.Linear(3, 6), nn.Embedding(8, 3)
held = [*encoder.parameters(), *decoder.parameters(), *codes.parameters()]
optimizer = torch.optim.SGD(held, lr=0.1)
for x in torch.randn(2, 5, 6):
    z = encoder(x)
    nearest = codes(torch.cdist(z, codes.weight).argmin(dim=1))
    optimizer.zero_grad()
    (decoder(nearest) - x).pow(2).mean().backward()
    optimizer.step()
"""


def test_distances_to_an_embedding_have_as_many_dimensions_as_its_weight() -> None:
    outcome = fix("case.py", CODES.encode(), Plan(Config(Path(), unsafe_fixes=True)))
    old = "codes(torch.cdist(z, codes.weight).argmin(dim=1))"
    assert outcome.after is not None
    assert outcome.after.decode() == CODES.replace(old, f"{old} + (z - z.detach())")
