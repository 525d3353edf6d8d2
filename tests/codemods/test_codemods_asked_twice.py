"""Gradients that are asked for of several roots at once, and of one graph in several calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

ASKED = """import torch

w = torch.ones(3, requires_grad=True)
one = torch.ones(())
for _ in range(2):
    h = w.exp()
    a, b = h.sum(), h.pow(2).sum()
    {first}
    {second}
"""
ALONE = "torch.autograd.grad({root}, [w]{more})"


def mended(text: str) -> str | None:
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    assert not outcome.remaining
    return outcome.after.decode() if outcome.after else None


@pytest.mark.parametrize("more", ["", ", retain_graph=False"])
def test_several_roots_of_one_call_are_walked_at_once(more: str) -> None:
    both = ALONE.format(root="[a, b]", more=f", [one, one]{more}")
    assert mended(ASKED.format(first=both, second="pass")) is None


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ("", ", retain_graph=True"),
        (", [one]", ", [one], retain_graph=True"),
        (", [one], False", ", [one], True"),
        (", [one], retain_graph=False", ", [one], retain_graph=True"),
    ],
)
def test_the_first_of_two_calls_is_told_to_keep_the_graph(more: str, kept: str) -> None:
    second = ALONE.format(root="b", more="")
    found = mended(ASKED.format(first=ALONE.format(root="a", more=more), second=second))
    assert found == ASKED.format(first=ALONE.format(root="a", more=kept), second=second)


def test_two_loops_that_stand_on_a_line_each_are_no_row_of_calls() -> None:
    text = (
        "import torch\nfrom torch import nn\nnet = nn.Linear(4, 1)\n"
        "losses = [net(torch.randn(2, 4)).mean() for _ in range(3)]\n"
        "for one in losses: one.backward()\nfor one in losses: one.backward()\n"
    )
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    assert outcome.failure is None
    assert (outcome.after or b"").count(b".backward(") == 2
