"""What is done to a gradient that was cleared: some of it fills it again, a factor doesn't."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from short import kinds, listed

from gradfix.tape.domain import trail

EMPTIED = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(2, 4, 3):
    net(x).sum().backward()
    opt.zero_grad()
    for p in net.parameters():
        {done}
    opt.step()
"""


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        pytest.param("p.grad.mul_(0.5)", True, id="a factor"),
        pytest.param("p.grad.div_(2.0)", True, id="a divisor"),
        pytest.param("p.grad.add_(0.1 * p.detach())", False, id="a decay"),
        pytest.param("p.grad.copy_(unknown(p))", False, id="another one"),
        pytest.param("p.grad.mul_(unknown(p))", False, id="a factor that isn't known"),
    ],
)
def test_a_step_finds_nothing_though_it_was_scaled(done: str, expected: bool) -> None:
    assert ("zero_grad_before_step" in kinds(EMPTIED.format(done=done))) is expected


LOOKED_AT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
    def forward(self, x):
        return self.head(self.body(x))
net, other = Net(), nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
for x in torch.ones(2, 4, 3):
    x.requires_grad_()
    net(x).sum().backward()
    print({looked_at})
    opt.zero_grad()
    opt.step()
"""


@pytest.mark.parametrize("looked_at", ["x.grad.norm()", "net.body.weight.grad.norm()", "other.grad"])
def test_a_step_finds_nothing_though_somebody_looked_at_another_gradient(looked_at: str) -> None:
    assert listed(LOOKED_AT.format(looked_at=looked_at)) == {"zero_grad_before_step"}


ATTACK = """
def attack(net, x, wide):
    delta = torch.ones(4, requires_grad=True) if wide else torch.zeros(4, requires_grad=True)
    for _ in range(2):
        (x + delta).exp().sum().backward()
        delta.data = (delta + 0.1 * delta.grad.sign()).detach()
        {clear}
"""


@pytest.mark.parametrize("limit", [4, 1], ids=["each by itself", "as one of several"])
@pytest.mark.parametrize(
    "clear",
    [
        "delta.grad.zero_()",
        "delta.grad.fill_(0)",
        "delta.grad.mul_(0)",
        "delta.grad.copy_(torch.zeros(4))",
        "delta.grad.data.zero_()",
        "delta.grad.detach_().zero_()",
        "delta.grad *= 0",
        "delta.grad[:] = 0",
        "delta.grad = None",
        "torch.zero_(delta.grad)",
        "torch.mul(delta.grad, 0, out=delta.grad)",
    ],
)
def test_an_input_that_is_one_of_several_has_its_gradient_cleared(clear: str, limit: int) -> None:
    with patch.object(trail, "LIMIT", limit):
        assert listed(ATTACK.format(clear=clear)) == set()
        assert listed(ATTACK.format(clear="delta.grad.sign()")) == {"missing_zero_grad"}
