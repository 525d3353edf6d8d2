"""One of several views is written: safe where what else is read afterwards has elements of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

ATTENTION = """import torch
from torch import nn

layer = nn.Linear(4, 12)
{made}
q *= 2
(q * k).sum().backward()
{later}
"""
SPLIT = "whole = layer(torch.ones(5, 4)){way}\nq, k, v = whole.{split}"


def unsafe(made: str, later: str = "print(v)") -> str:
    text = ATTENTION.format(made=made, later=later)
    seen = fix("program.py", text.encode(), Plan(Config(Path(), unsafe_fixes=True)))
    found = next(one for one in seen.findings if one.span.line == text.splitlines().index("q *= 2") + 1)
    assert found.rule == "inplace_on_view_of_many" and found.says
    return found.unsafe


@pytest.mark.parametrize(
    ("way", "split"),
    [
        ("", "chunk(3, dim=-1)"),
        ("", "split([4, 4, 4], dim=1)"),
        (".reshape(5, 3, 4).permute(1, 0, 2)", "unbind(0)"),
        (".view(5, 3, 4).unsqueeze(0)", "unbind(2)"),
    ],
)
def test_pieces_that_one_call_returned_do_not_see_each_other(way: str, split: str) -> None:
    assert not unsafe(SPLIT.format(way=way, split=split))


def test_a_view_of_another_piece_does_not_see_it_either() -> None:
    assert not unsafe(SPLIT.format(way="", split="chunk(3, dim=-1)") + "\nk = k.t().t()")


@pytest.mark.parametrize(
    ("made", "later"),
    [
        (SPLIT.format(way="", split="chunk(3, dim=-1)"), "print(whole)"),
        (SPLIT.format(way="", split="chunk(3, dim=-1)") + "\nshown = q.t()", "print(shown)"),
        (SPLIT.format(way=".sum().expand(3)", split="unbind(0)"), "print(v)"),
        (SPLIT.format(way="[0].unfold(0, 6, 3)", split="unbind(0)"), "print(v)"),
    ],
    ids=["what they were taken from", "a view of it", "what was expanded", "windows that overlap"],
)
def test_what_shares_an_element_sees_the_write(made: str, later: str) -> None:
    assert unsafe(made, later).startswith("another name sees this write")
