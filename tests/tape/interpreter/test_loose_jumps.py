"""Files that Python would not compile are read all the same, as far as they can be."""

from __future__ import annotations

import pytest
from short import kinds

JUMPS = """
def step(x):
    if x > 1:
        if x > 2:
            {jump}
        return x
    return x

w = torch.ones(2, requires_grad=True)
y = w.exp()
y += step(w[0])
y.sum().backward()
"""


@pytest.mark.parametrize("jump", ["continue", "break"])
def test_a_jump_without_a_loop_ends_its_function(jump: str) -> None:
    assert kinds(JUMPS.format(jump=jump)) == {"inplace_overwrites_saved"}
