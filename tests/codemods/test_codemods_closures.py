"""Writes in a closure that a step calls again and again: what its next call reads is not what it has read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding, Safety

HEAD = """import torch
from functools import partial
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

v, w = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
optimizer = torch.optim.LBFGS([v, w])
loader = DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=4)


class Data:
    def __init__(self):
        self.x = torch.ones(3)


data = Data()


def scaled(h):
    for one in (v, w):
        h += h * one
    return h


"""
BODY = """    optimizer.zero_grad()
    h = READ
    h += h * v
    loss = h.pow(2).sum()
    loss.backward()
    return loss
"""
OUTER = "x = torch.ones(3)\ndef closure():\n" + BODY.replace("READ", "x") + "optimizer.step(closure)\n"
HELD = "def closure():\n" + BODY.replace("READ", "data.x") + "optimizer.step(closure)\n"
MADE = (
    "def made(x):\n    def closure():\n"
    + "".join(f"    {line}\n" for line in BODY.replace("READ", "x").splitlines())
    + "    return closure\noptimizer.step(made(torch.ones(3)))\n"
)
GIVEN = "def closure(h):\n" + BODY.replace("    h = READ\n", "")
BATCH = """for (x,) in loader:
    def closure():
        optimizer.zero_grad()
        loss = scaled(x).pow(2).sum()
        loss.backward()
        return loss
    optimizer.step(closure)
"""


def findings(text: str, code: str) -> list[Finding]:
    outcome = fix("program.py", (HEAD + text).encode(), Plan(Config(Path())))
    return [one for one in outcome.findings if one.code == code]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(OUTER, id="a name outside of it"),
        pytest.param(HELD, id="an object outside of it"),
        pytest.param(MADE, id="an argument of the function that made it"),
        pytest.param(GIVEN + "optimizer.step(partial(closure, torch.ones(3)))\n", id="what is bound to it"),
        pytest.param(GIVEN.replace("(h)", "(h=torch.ones(3))") + "optimizer.step(closure)\n", id="a default"),
        pytest.param(BATCH, id="a batch that a function writes twice"),
    ],
)
def test_what_the_next_call_reads_is_rewritten_only_by_those_who_ask(text: str) -> None:
    """To keep the write won't do: it puts what the next call reads into a graph that is freed by then."""
    (found,) = findings(text, "GF101")
    assert found.safety is Safety.UNSAFE
    assert "another name sees this write" in found.unsafe
    assert found.says.startswith("h = h + h * ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(OUTER.replace("h = x", "h = torch.ones(3)"), "h = h + h * v", id="made in each call"),
        pytest.param(OUTER.replace("h = x", "h = x * 1"), "h = h + h * v", id="made of it in each call"),
        pytest.param(
            "optimizer = torch.optim.LBFGS([v, w], max_iter=1)\n" + OUTER, "h.clone()", id="one call"
        ),
        pytest.param("optimizer = torch.optim.SGD([v, w])\n" + OUTER, "h.clone()", id="one call of others"),
    ],
)
def test_what_no_next_call_reads_is_rewritten_safely(text: str, says: str) -> None:
    (found,) = findings(text, "GF101")
    assert (found.safety, found.says) == (Safety.SAFE, says)


def test_a_graph_that_grows_with_each_call_is_not_safely_kept() -> None:
    """The third call needs what the second one kept of parameters that were stepped since."""
    (found,) = findings(HELD, "GF302")
    assert found.safety is Safety.UNSAFE


def test_an_object_that_holds_what_is_written_sees_it() -> None:
    body = BODY.replace("READ", "data.x").replace("    return loss\n", "")
    (found,) = findings("for turn in range(2):\n" + body, "GF101")
    assert found.says == "h.clone()"
