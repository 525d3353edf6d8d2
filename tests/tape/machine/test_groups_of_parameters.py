"""A loop over many parameters goes through them as one; what is computed of it is computed of them all."""

from __future__ import annotations

import pytest
from short import kinds

PENALTY = """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.layers = nn.ModuleList([nn.Linear(5, 5) for _ in range(2)])
        self.spare = nn.ModuleList([nn.Linear(5, 5) for _ in range({spare})])
        self.router = nn.Linear(5, 2)
        self.base = nn.Linear(5, 5)
        self.down = nn.Parameter(torch.randn(5, 2))
        self.up = nn.Parameter(torch.randn(2, 5))

    def forward(self, x):
        h = self.first(x)
        for layer in self.layers:
            h = layer(h)
        x = torch.tensor(self.router(h).tolist())[:, :1] * h
        return self.base(x) + x @ self.down @ self.up


def main():
    tower = Tower()
    optimizer = torch.optim.SGD(list(tower.parameters()), lr=0.1)
    for _ in range(2):
        loss = tower(torch.ones(8, 6)).mean(){penalty}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize("spare", [1, 3])
@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        ("", True),
        (" + sum(p.abs().sum() for p in tower.parameters())", False),
        (" + 0.1 * sum(p.norm() for p in tower.parameters() if p.requires_grad)", False),
        (" / sum(p.numel() for p in tower.parameters())", True),
    ],
)
def test_parameters_that_a_penalty_runs_over_are_reached_however_many(
    spare: int, penalty: str, expected: bool
) -> None:
    found = kinds(PENALTY.format(spare=spare, penalty=penalty))
    assert ("unreached_parameters" in found) is expected
