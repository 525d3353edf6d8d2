"""What a grad mode keeps out of every graph: who asks for its gradients fails, and nothing else mends it."""

from __future__ import annotations

import pytest
from short import analysis, culprits, kinds

from gradfix.defects import Role
from gradfix.defects.severed import Cut, Unrecorded

ASKED = """
net, x = nn.Linear(4, 1), torch.randn(4, 4)
@torch.no_grad()
def draw(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(net(x).sum(), [x])[0]
draw(x)
"""


def test_who_asks_for_gradients_of_what_was_not_recorded_fails_there() -> None:
    (defect,) = analysis(ASKED).defects
    assert culprits(ASKED, "forward_in_no_grad") == ["@torch.no_grad()"]
    assert [one.span.line for one in defect.evidence if one.role is Role.BACKWARD] == [9]


def test_its_fix_is_unsafe_as_the_rest_may_be_meant_to_be_kept_from_a_graph() -> None:
    (defect,) = analysis(ASKED).defects
    assert defect.told(Unrecorded).doubtful


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            ASKED.replace("    return", "    with torch.enable_grad():\n        y = net(x).sum()\n    return")
            .replace("net(x).sum(), [x]", "y, [x]"),
            id="recorded in between",
        ),
        pytest.param(ASKED.replace("@torch.no_grad()", "@mode"), id="a decorator that isn't known"),
    ],
)  # fmt: skip
def test_nothing_is_said_of(body: str) -> None:
    assert kinds(body) == set()


BOTH = """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
@torch.no_grad()
def learn():
    loss = (w.detach().exp() * 2 + v * 3).sum()
    loss.backward()
learn()
"""


def test_of_two_cuts_the_mode_is_to_blame_in_which_the_other_was_made() -> None:
    assert kinds(BOTH) == {"forward_in_no_grad"}


def test_without_a_cut_in_a_mode_that_records_nothing_no_gradient_arrives_either() -> None:
    (defect,) = analysis(BOTH.replace(" + v * 3", "")).defects
    assert not defect.told(Cut).arrives


REFUSED = """
policy, critic = nn.Linear(3, 2), nn.Linear(5, 1)
x = torch.ones(4, 3)
action = policy(x)
with torch.no_grad():
    q = critic(torch.cat((x, action), -1)).squeeze()
q -= 0.1 * action.pow(2).sum(-1)
q.mean().backward()
"""


def test_what_follows_a_write_that_torch_refuses_is_told_as_if_it_were_mended() -> None:
    assert kinds(REFUSED) == {"inplace_on_view_of_many"}


MASKED = """
net = nn.Linear(3, 1)
err = net(torch.randn(8, 3))
mask = (err.abs() < 1.0).float()
with torch.no_grad():
    {inside}
{behind}
loss.backward()
"""


def test_a_loss_that_is_not_recorded_is_not_missing_the_gradient_of_its_mask() -> None:
    body = MASKED.format(inside="loss = (mask * err.pow(2)).mean()", behind="")
    assert culprits(body, "forward_in_no_grad") == ["with torch.no_grad():"]
    assert kinds(body) == {"forward_in_no_grad"}


def test_beside_a_constant_that_is_not_recorded_a_comparison_can_be_what_was_to_learn() -> None:
    body = MASKED.format(inside="weight = err.exp()", behind="loss = (mask * weight).mean()")
    assert "non_differentiable_loss" in kinds(body)


BEHIND = """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 1)

    {decorator}
    def forward(self, x):
        return self.head(x)


critic, actor = Critic(), nn.Linear(5, 2)
for x in torch.ones(2, 4, 5):
    values = critic(x).squeeze(-1)
    action = torch.distributions.Categorical(logits=actor(x)).sample()
    rewards = (action == 0).float() + unknown(x)[:, 0]
    with torch.no_grad():
        returns = rewards + 0.9 * torch.roll(values, -1)
    {loss}.backward()
"""


@pytest.mark.parametrize(
    ("decorator", "loss", "expected"),
    [
        pytest.param(
            "@torch.no_grad()", "(returns - values).pow(2).mean()", "@torch.no_grad()", id="behind it"
        ),
        pytest.param("", "returns.mean()", "with torch.no_grad():", id="alone"),
    ],
)
def test_a_block_that_keeps_nothing_more_than_another_is_not_to_blame(
    decorator: str, loss: str, expected: str
) -> None:
    assert culprits(BEHIND.format(decorator=decorator, loss=loss), "forward_in_no_grad") == [expected]
