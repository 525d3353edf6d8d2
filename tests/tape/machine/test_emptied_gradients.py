"""What is done to a gradient that was cleared: some of it fills it again, a factor doesn't."""

from __future__ import annotations

import pytest
from short import kinds

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
