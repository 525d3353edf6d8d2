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


PARTS = """
encoder, head = nn.Linear(4, 40), nn.Linear(40, 1)
{before}
opt = torch.optim.SGD({given}, lr=0.1)
for _ in range(2):
    with torch.no_grad():
        h = encoder(torch.ones(2, 4))
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BEFORE = "whole = nn.Sequential(encoder, head)"


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        pytest.param("", "[*encoder.parameters(), *head.parameters()]", True, id="spread out"),
        pytest.param("", "list(encoder.parameters()) + list(head.parameters())", True, id="added up"),
        pytest.param(
            "import itertools", "itertools.chain(encoder.parameters(), head.parameters())", True, id="chained"
        ),
        pytest.param(BEFORE, "whole.parameters()", False, id="a part of what is held"),
        pytest.param(BEFORE, "list(whole.parameters())", False, id="a part of a list"),
        pytest.param(
            BEFORE + "\nnn.utils.clip_grad_norm_(encoder.parameters(), 1.0)",
            "list(whole.parameters())",
            False,
            id="a part that was asked for something else",
        ),
        pytest.param(
            BEFORE,
            "[p for part in whole for p in part.parameters()]",
            False,
            id="each part asked in one line",
        ),
    ],
)
def test_who_names_a_module_for_an_optimizer_means_to_train_it(
    before: str, given: str, expected: bool
) -> None:
    found = kinds(PARTS.format(before=before, given=given))
    assert ("unreached_parameters" in found) is expected
