"""A loss of which one term was forgotten to be reduced: that term is, and the others keep their weight."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

enc, dec = nn.Linear(3, 6), nn.Linear(3, 3)
x = torch.randn(8, 3)
mu, logvar = enc(x).chunk(2, dim=1)
kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp())
"""


def outcome(body: str, unsafe: bool = False) -> Outcome:
    return fix("program.py", (HEAD + body).encode(), Plan(Config(Path(), unsafe_fixes=unsafe)))


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param(
            "fit = F.mse_loss(dec(mu), x)\nloss = fit + 0.1 * kl\nloss.backward()\n",
            "fit = F.mse_loss(dec(mu), x)\nloss = fit + 0.1 * kl.mean()\nloss.backward()\n",
            id="beside a mean",
        ),
        pytest.param(
            "loss = 2 * (kl - F.mse_loss(dec(mu), x))\nloss.backward()\n",
            "loss = 2 * (kl.mean() - F.mse_loss(dec(mu), x))\nloss.backward()\n",
            id="at the head of a scaled sum",
        ),
        pytest.param(
            "def total(fit, kl):\n    return fit + (kl + kl ** 2)\n"
            "total(F.mse_loss(dec(mu), x), kl).backward()\n",
            "def total(fit, kl):\n    return fit + (kl + kl ** 2).mean()\n"
            "total(F.mse_loss(dec(mu), x), kl).backward()\n",
            id="in the function that adds up",
        ),
        pytest.param(
            'fit = F.mse_loss(dec(mu), x, reduction="none")\n'
            "loss = fit + 0.1 * dec.weight.pow(2).sum()\nloss.backward()\n",
            'fit = F.mse_loss(dec(mu), x, reduction="none")\n'
            "loss = fit.mean() + 0.1 * dec.weight.pow(2).sum()\nloss.backward()\n",
            id="a loss told not to reduce takes its mean, whatever a penalty is",
        ),
        pytest.param(
            "gain = nn.Parameter(torch.tensor(1.0))\nout = dec(mu) + gain + x.mean()\nout.backward()\n",
            "gain = nn.Parameter(torch.tensor(1.0))\nout = dec(mu) + gain + x.mean()\nout.sum().backward()\n",
            id="a number that nothing was reduced to is no other term",
        ),
        pytest.param(
            "both = kl + mu\nboth.backward()\n",
            "both = kl + mu\nboth.sum().backward()\n",
            id="two large terms are one loss of many elements",
        ),
        pytest.param(
            "loss = F.mse_loss(dec(mu), x) + kl\nfirst = loss[0]\nloss.backward()\n",
            "loss = F.mse_loss(dec(mu), x) + kl\nfirst = loss[0]\nloss.sum().backward()\n",
            id="what is read by its elements keeps them",
        ),
    ],
)
def test_the_term_that_has_several_elements_is_reduced(body: str, after: str) -> None:
    seen = outcome(body).after
    assert seen is not None and seen.decode() == HEAD + after


def test_beside_sums_it_is_summed_which_is_unsafe() -> None:
    body = 'loss = F.mse_loss(dec(mu), x, reduction="sum") + kl\nloss.backward()\n'
    assert outcome(body).after is None
    seen = outcome(body, unsafe=True).after
    assert seen is not None and seen.decode() == HEAD + body.replace("+ kl", "+ kl.sum()")


def test_what_a_loop_adds_up_is_no_term_where_one_turn_has_the_wide_one_on_the_other_side() -> None:
    """In its first turn the total is a plain number: it has no `mean()`."""
    body = (
        "loss = 0.0\nfor term in (kl, F.mse_loss(dec(mu), x)):\n    loss = loss + term\n"
        "loss.backward()\nprint(loss)\n"
    )
    seen = outcome(body, unsafe=True)
    assert [each.code for each in seen.findings] == ["GF301"]
    assert b"loss.mean() +" not in (seen.after or b"")
