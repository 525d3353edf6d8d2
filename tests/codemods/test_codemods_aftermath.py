"""A graph that is joined again: no fix is offered where the backward is certain to fail then all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import Plan

ADAPTED = """import torch
from torch import nn, optim
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
losses = []
for x in {tasks}:
    inner = optim.SGD(net.parameters(), lr=0.1)
    inner.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    inner.step()
    with torch.no_grad():
        losses.append(net(x).pow(2).mean())
torch.stack(losses).mean().backward()
"""
MODE = "    with torch.no_grad():\n        losses"


def outcome(text: str, unsafe: bool = True) -> Outcome:
    return fix("program.py", text.encode(), Plan(Config(Path(), unsafe_fixes=unsafe)))


@pytest.mark.parametrize("unsafe", [False, True])
def test_what_a_later_step_then_overwrites_is_not_joined_again(unsafe: bool) -> None:
    seen = outcome(ADAPTED.format(tasks="torch.ones(2, 4, 2)"), unsafe)
    (found,) = seen.findings
    assert found.rule == "forward_in_no_grad" and seen.after is None
    assert "but then `inner.step()` changes parameters that a later backward still needs: " in found.decline


def test_what_no_step_follows_is_joined_again() -> None:
    text = ADAPTED.format(tasks="[torch.ones(4, 2)]")
    seen = outcome(text, unsafe=False)
    assert seen.after is not None and seen.remaining == ()
    assert seen.after.decode() == text.replace(MODE, "    losses")


ACTOR_CRITIC = """import torch
from torch import nn

trunk, policy, value = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2), nn.Linear(8, 1)
{optimizer}
seen = trunk(torch.ones(3, 4))
gap = 1 - value(seen)
gap.pow(2).mean().backward()
optimizer.step()
(policy(seen).log_softmax(1)[:, :1] * gap).mean().backward()
"""
STEPPED = "optimizer = torch.optim.SGD([*trunk.parameters(), *value.parameters()], lr=0.1)"
ASIDE = "other = nn.Linear(2, 2)\noptimizer = torch.optim.SGD(other.parameters(), lr=0.1)"


def test_a_graph_is_not_kept_for_a_backward_that_a_step_between_is_certain_to_spoil() -> None:
    (found,) = outcome(ACTOR_CRITIC.format(optimizer=STEPPED)).findings
    assert found.rule == "backward_twice" and found.safety is None
    assert "retain_graph=True); but then `optimizer.step()` changes" in found.decline
    assert ": optimizer.step() after (policy(seen)" in found.decline


def test_a_graph_is_kept_where_the_step_between_is_of_others() -> None:
    seen = outcome(ACTOR_CRITIC.format(optimizer=ASIDE), unsafe=False)
    assert seen.after is not None and b"gap.pow(2).mean().backward(retain_graph=True)" in seen.after


TWICE = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
y = net(torch.ones(4, 2)){cut}
y.mean().backward()
y.pow(2).mean().backward()
"""


def test_what_is_mended_safely_next_is_joined_again() -> None:
    seen = outcome(TWICE.format(cut=".detach()"), unsafe=False)
    assert seen.after is not None and seen.remaining == ()
    assert seen.after.decode() == TWICE.format(cut="").replace("backward()", "backward(retain_graph=True)", 1)


def test_what_fails_elsewhere_is_no_reason_to_leave_it() -> None:
    text = "y = net(torch.ones(4, 2)).detach()\ny.mean().backward()\n"
    other = "w = torch.ones(3, requires_grad=True)\nw.add_(1)\n"
    seen = outcome(TWICE.partition("y = ")[0] + text + other)
    assert seen.after is not None and ".detach()" not in seen.after.decode()


SAMPLED = """import torch
from torch import nn, optim
from torch.distributions import Normal

actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
optimizer = optim.Adam(actor.parameters())


def act(state):
    return Normal(actor(state), 1.0).sample()


action = {action}
loss = -critic(action).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("action", "told"),
    [("act(torch.ones(4, 2))", True), ("Normal(actor(torch.ones(4, 2)), 1.0).sample()", False)],
)
def test_of_a_sample_that_is_returned_it_is_told_who_has_to_detach_it(action: str, told: bool) -> None:
    (found,) = outcome(SAMPLED.format(action=action), unsafe=False).findings
    assert found.rule == "unreached_parameters" and "other numbers" in found.unsafe
    assert ("what `act` returns has to detach it" in found.unsafe) is told


LOST = """import torch
from torch import nn

w = nn.Parameter(torch.randn(5, 4))
b = torch.zeros(4, requires_grad=True) * 0.1
for x in torch.randn(3, 2, 5):
    loss = torch.tanh(x @ w + b).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad.zero_()
"""
REPLACED = """import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters())
net = nn.Linear(3, 1)
for x in torch.ones(3, 2, 3):
    opt.zero_grad()
    net(x).sum().backward()
    with torch.no_grad():
        for p in net.parameters():
            p.add_(p.grad, alpha=0.1)
    opt.step()
"""


def test_a_graph_that_is_no_graph_once_its_result_is_a_leaf_is_not_kept() -> None:
    seen = outcome(LOST, unsafe=False)
    assert seen.after is not None
    assert seen.after.decode() == LOST.replace(
        "torch.zeros(4, requires_grad=True) * 0.1", "(torch.zeros(4) * 0.1).requires_grad_()"
    )
    twice = next(one for one in seen.findings if one.rule == "backward_twice")
    assert twice.safety is None and twice.decline == "mend line 5 first: this may be right then"


@pytest.mark.parametrize("unsafe", [False, True])
def test_what_an_optimizer_of_another_module_does_not_clear_is_not_cleared_beside_it(unsafe: bool) -> None:
    seen = outcome(REPLACED, unsafe)
    stale = next(one for one in seen.findings if one.rule == "missing_zero_grad")
    assert stale.decline == "mend line 5 first: this may be right then"
    after = (seen.after or b"").decode()
    assert ("zero_grad" in after) == unsafe and after.count("zero_grad") <= 1


REBUILT = """import torch
from torch import nn


class Stepper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, loss):
        self.optimizer.zero_grad()
        loss = torch.tensor(loss.item(), requires_grad=True)
        loss.backward()
        self.optimizer.step()


net = nn.Linear(3, 1)
stepper = Stepper(torch.optim.SGD(net.parameters(), lr=0.1))
for x in torch.ones(3, 2, 3):
    stepper.step(net(x).sum())
"""


def test_what_clears_stays_where_the_backward_behind_it_was_only_cut_off() -> None:
    seen = outcome(REBUILT, unsafe=True)
    assert seen.after is not None
    cut = "        loss = torch.tensor(loss.item(), requires_grad=True)\n"
    assert seen.after.decode() == REBUILT.replace(cut, "")
