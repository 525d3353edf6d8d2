"""Lists of modules that grow, however what they are given is named."""

from __future__ import annotations

import pytest
from short import listed

GROWN = """
net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid())
net.{}
out = net(torch.randn(1, 2))
out += 1
out.sum().backward()
"""


@pytest.mark.parametrize(
    ("grown", "said"),
    [
        ("append(nn.Linear(2, 2))", False),
        ("append(module=nn.Linear(2, 2))", False),
        ("extend(modules=[nn.Linear(2, 2)])", False),
        ("insert(2, nn.Linear(2, 2))", False),
        ("insert(index=2, module=nn.Linear(2, 2))", False),
        ("insert(1, nn.Linear(2, 2))", True),
        ("insert(index=1, module=nn.Linear(2, 2))", True),
        ("insert(1, module=nn.Linear(2, 2))", True),
        ("append(module=nn.Sigmoid())", True),
    ],
)
def test_what_is_put_in_runs_in_its_place(grown: str, said: bool) -> None:
    assert listed(GROWN.format(grown)) == ({"inplace_overwrites_saved"} if said else set())
