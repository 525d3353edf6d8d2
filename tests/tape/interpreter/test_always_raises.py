"""A method that only ever raises has no result: who goes on behind its call goes on with another one's."""

from __future__ import annotations

import pytest
from short import kinds

TRAINED = """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.head(x){ending}

model = Pool()
opt = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    loss = F.nll_loss(model(torch.ones(3, 4)), torch.zeros(3).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("ending", "found"),
    [
        pytest.param(
            "\n        raise NotImplementedError\n        return x",
            set(),
            id="nothing is said of what never returns",
        ),
        pytest.param("\n        return x.detach()", {"detached_loss_path"}, id="what returns is followed"),
    ],
)
def test_a_method_that_always_raises_gives_its_caller_nothing_known(ending: str, found: set[str]) -> None:
    assert kinds(TRAINED.format(ending=ending)) == found
