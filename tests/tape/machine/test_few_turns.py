"""What is kept of a few turns that are counted in a function isn't worth a word."""

from __future__ import annotations

import pytest
from short import listed

KEPT = """
def train(batches):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters())
    losses = []
    for turn in {}:
        optimizer.zero_grad()
        loss = net(torch.ones(2, 3)).mean(0)
        loss.backward()
        optimizer.step()
        losses.append(loss[0])
    assert losses[0] >= losses[-1]

train([1, 2, 3])
"""


@pytest.mark.parametrize(
    ("turns", "said"),
    [("range(3)", False), ("range(3 * 5)", False), ("range(3000)", True), ("batches", True)],
)
def test_few_turns_of_a_function_are_few(turns: str, said: bool) -> None:
    assert ("graph_leak" in listed(KEPT.format(turns))) is said
