"""Several writes over one saved value: the first is mended, and the others only if they still are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

NET = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv(x)
        gate = torch.sigmoid(out)
"""
RUN = """        return out


Block()(torch.randn(2, 3, 4, 4)).sum().backward()
"""


def mended(body: str) -> str | None:
    outcome = fix("program.py", (NET + body + RUN).encode(), Plan(Config(Path())))
    text = outcome.after.decode() if outcome.after else None
    return text and text.removeprefix(NET).removesuffix(RUN)


KEEP = "        power = out * out\n"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param(
            KEEP + "        out *= gate\n        out += x\n",
            KEEP + "        out = out * gate\n        out += x\n",
            id="what saves nothing goes on in place",
        ),
        pytest.param(
            KEEP + "        out += x\n        out = self.act(out)\n",
            KEEP + "        out = out + x\n        out = self.act(out)\n",
            id="a module behind it, which is found first, stays in place",
        ),
        pytest.param(
            KEEP + "        out *= gate\n        power = power + out * out\n        out += x\n",
            KEEP + "        out = out * gate\n        power = power + out * out\n        out = out + x\n",
            id="what another operation has saved by then is mended next",
        ),
        pytest.param(
            KEEP + "        if x.any():\n            out += x\n        else:\n            out -= x\n",
            KEEP
            + "        if x.any():\n            out = out + x\n        else:\n            out = out - x\n",
            id="neither of two branches comes first",
        ),
        pytest.param(
            KEEP + "        if x.any():\n            out += x\n        out -= x\n",
            KEEP + "        if x.any():\n            out = out + x\n        out = out - x\n",
            id="what may not have run spares nothing",
        ),
    ],
)
def test_what_goes_with_the_first_write_stays_as_it_is(body: str, after: str) -> None:
    body = body + "        out = out + power.mean()\n"
    assert mended(body) == after + "        out = out + power.mean()\n"


def test_a_later_write_says_which_one_is_to_be_mended_first() -> None:
    body = KEEP + "        out *= gate\n        out += x\n        out = out + power.mean()\n"
    text = NET + body + RUN
    first, later = fix("program.py", text.encode(), Plan(Config(Path()))).findings
    assert first.applicability == "safe" and later.applicability == "none"
    assert later.decline == f"mend line {first.span.line} first: this may be right then"
