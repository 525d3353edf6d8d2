"""Loops go through what they are given in the order that it has."""

from __future__ import annotations

import pytest
from short import kinds

LAST = """
w = torch.ones(3, requires_grad=True)
out = w * 2
for i in {turns}:
    out.sum().backward(retain_graph=True)
    if i == 1:
        with torch.no_grad():
            out = w * 3
"""


@pytest.mark.parametrize(
    "turns",
    [
        "reversed(range(1, 3))",
        "reversed(range(1, 200))",
        "reversed([1, 2])",
        "sorted(range(1, 3), reverse=True)",
        "[2, 1]",
    ],
)
def test_what_the_last_turn_leaves_comes_too_late_for_the_loop(turns: str) -> None:
    assert "forward_in_no_grad" not in kinds(LAST.format(turns=turns))


@pytest.mark.parametrize(
    "turns", ["range(1, 3)", "sorted([2, 1])", "reversed([2, 1])", "reversed(range(2, 0, -1))"]
)
def test_what_the_first_turn_leaves_is_met_in_the_next(turns: str) -> None:
    assert "forward_in_no_grad" in kinds(LAST.format(turns=turns))
