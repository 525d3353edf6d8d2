"""Terms of a loss that train nothing while the loss around them does."""

from __future__ import annotations

from typing import Any

import pytest
from short import culprits, whole

NETS = """
net, head, critic = nn.Linear(4, 4), nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
log_scale = torch.zeros(1, requires_grad=True)
scale_optimizer = torch.optim.SGD([log_scale], lr=0.1)
weight, centre = 0.5, torch.randn(5, 4)
for _ in range(2):
    x, y = torch.randn(5, 4), torch.randint(3, (5,))
    features = net(x)
    task = F.cross_entropy(head(features), y)
    critic_optimizer.zero_grad()
    F.softplus(critic(features.detach())).mean().backward()
    critic_optimizer.step()
    scale_optimizer.zero_grad()
    (log_scale * task.detach()).sum().backward()
    scale_optimizer.step()
    {term}
    loss = task + weight * term
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BROKEN = {
    "cut off below operations": "term = 1.0 - F.cosine_similarity(features.detach(), centre).mean()",
    "cut off as a whole": "term = (features - centre).pow(2).mean().detach()",
    "cut off twice, and a number": "term = (features - centre).pow(2).mean().detach().item()",
    "what another loss trains as well": "term = -critic(features).mean().detach()",
    "copied out of a list, times constants": (
        "each = [row.pow(2).mean() for row in features]; term = (torch.tensor(each) * torch.rand(5)).mean()"
    ),
    "moved and cast after the cut": "term = torch.relu(features.detach() - 1).sum().to('cpu').float()",
}
HEALTHY = {
    "what only another loss trains": "term = 0.1 * log_scale.exp().detach().mean()",
    "the value of a live term is corrected": (
        "live = torch.sigmoid(features).mean(); task = task + live; "
        "term = 2 * ((features > 0).float().mean() - live).detach()"
    ),
    "the entropy of a target": (
        "target = features.softmax(1).detach(); task = task - (target * head(x)[:, :1]).mean(); "
        "term = (target * target.log()).sum(1).mean()"
    ),
    "the entropy of a target that is cut off again": (
        "target = features.softmax(1); task = task - (target.detach() * head(x)[:, :1]).mean(); "
        "term = (target.detach() * target.detach().log()).sum(1).mean()"
    ),
    "what was drawn has a density": (
        "dist = torch.distributions.Normal(features, 1.0); z = dist.sample(); "
        "task = task - dist.log_prob(z).mean(); "
        "term = torch.distributions.Normal(centre, 1.0).log_prob(z).mean()"
    ),
    "made under no_grad": (
        "frozen = torch.no_grad()\n    with frozen: wanted = net(x).softmax(1)\n"
        "    term = (wanted * wanted.log()).sum(1).mean()"
    ),
    "it has a graph": "term = (features.detach() - centre + net(x)).pow(2).mean()",
}


@pytest.mark.parametrize("term", BROKEN.values(), ids=BROKEN.keys())
def test_a_term_that_trains_nothing(term: str) -> None:
    assert len(culprits(NETS.format(term=term), "severed_term")) == 1


@pytest.mark.parametrize("term", HEALTHY.values(), ids=HEALTHY.keys())
def test_a_term_that_is_meant(term: str) -> None:
    assert culprits(NETS.format(term=term), "severed_term") == []


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("term", [*BROKEN.values(), *HEALTHY.values()], ids=[*BROKEN.keys(), *HEALTHY.keys()])
def test_what_torch_says_of_a_term(term: str) -> None:
    pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(compile(whole(NETS.format(term=term)), "case.py", "exec"), space)
    live = getattr(space["term"], "requires_grad", False)
    assert live is (term == HEALTHY["it has a graph"])


UNSURE = """
import elsewhere

net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    surrogate = torch.sigmoid(net(torch.randn(5, 4))).mean()
    value = torch.rand(())
    loss = {live} + (value - surrogate).detach()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "live",
    ["surrogate", "elsewhere.same(surrogate)", "elsewhere.loss()", "(elsewhere.loss() + net.weight.norm())"],
)
def test_what_may_be_the_term_whose_value_is_corrected(live: str) -> None:
    assert culprits(UNSURE.format(live=live), "severed_term") == []


def test_a_correction_of_no_term() -> None:
    assert culprits(UNSURE.format(live="net.weight.norm()"), "severed_term") != []
