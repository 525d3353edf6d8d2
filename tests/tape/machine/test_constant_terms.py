"""A term of the loss that is made of what was detached trains nothing: said of what nothing else trains.

Where its optimizer has stepped, that holds what is never trained.
"""

from __future__ import annotations

import pytest
from short import analysis

from gradfix.defects.leaning import certainty_of

TERMS = """
net, other = nn.Linear(3, 3), nn.Linear(3, 1)
x = torch.ones(2, 3)
opt = torch.optim.SGD([{held}], lr=0.1)
loss = {loss}
loss.backward()
"""
BOTH = "*net.parameters(), *other.parameters()"


@pytest.mark.parametrize(
    ("held", "loss", "expected"),
    [
        pytest.param(
            BOTH, "net(x).detach().pow(2).mean() + other(x).mean()", "certain", id="held, never trained"
        ),
        pytest.param(BOTH, "0.1 * net(x).detach().pow(2).mean() - other(x).mean()", "certain", id="scaled"),
        pytest.param(
            "*other.parameters()", "net(x).detach().pow(2).mean() + other(x).mean()", "", id="not held"
        ),
        pytest.param(
            BOTH, "net(x).detach().pow(2).mean() + other(net(x)).mean()", "", id="trained by another term"
        ),
        pytest.param(
            BOTH, "net(x).detach().pow(2).mean() * other(x).mean()", "", id="a weight of what learns"
        ),
        pytest.param(
            BOTH,
            "net(x).detach().pow(2).mean() + other(x).mean() + unknown(net)",
            "suspect",
            id="perhaps trained",
        ),
    ],
)
def test_a_term_of_what_was_detached_takes_it_from_the_gradient(held: str, loss: str, expected: str) -> None:
    found = [
        one for one in analysis(TERMS.format(held=held, loss=loss)).defects if one.kind == "severed_term"
    ]
    assert [certainty_of(one.lean) for one in found] == ([expected] if expected else [])
