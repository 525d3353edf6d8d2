"""`filter`: what passes is known where its test is, of each item."""

from __future__ import annotations

import pytest
from short import kinds

TRAINED = """
backbone, head = nn.Linear(6, 4), nn.Linear(4, 2)
for p in backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.SGD(filter({test}, [*backbone.parameters(), *head.parameters()]), lr=0.1)
head(backbone(torch.ones(3, 6))).sum().backward()
optimizer.zero_grad()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "known"),
    [
        pytest.param("lambda p: p.requires_grad", True, id="what requires grad"),
        pytest.param("lambda p: not p.requires_grad", False, id="what is frozen"),
        pytest.param("chosen", False, id="what somebody chooses"),
        pytest.param("lambda p: chosen(p)", False, id="what somebody else's test says"),
    ],
)
def test_an_optimizer_holds(test: str, known: bool) -> None:
    body = "from elsewhere import chosen\n" + TRAINED.format(test=test)
    assert ("zero_grad_before_step" in kinds(body)) is known
