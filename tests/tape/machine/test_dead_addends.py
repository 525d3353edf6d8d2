"""Terms of a loss that teach nothing while the others teach what was cut off from them."""

from __future__ import annotations

from typing import Any

import pytest
from short import analysis, culprits, whole

from gradfix.defects.leaning import certainty_of
from gradfix.defects.severed import Cut

NETS = """
net, head, critic, codes = nn.Linear(4, 4), nn.Linear(4, 3), nn.Linear(4, 1), torch.randn(7, 4)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
log_scale = torch.zeros(1, requires_grad=True)
scale_optimizer = torch.optim.SGD([log_scale], lr=0.1)
weight, centre, shown = 0.5, torch.randn(5, 4), []
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
    optimizer.zero_grad()
    {term}
    loss = task + weight * term
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
    "shown, too": "term = (features - centre).pow(2).mean().detach(); shown.append(term)",
}
CHOSEN = {
    "an accuracy": "term = 1 - (head(features).argmax(1) == y).float().mean()",
    "what is looked up by the best": "term = codes[features.argmax(1)].abs().mean()",
}
HEALTHY = {
    "what only another loss trains": "term = 0.1 * log_scale.exp().detach().mean()",
    "the value of a live term is corrected": (
        "live = torch.sigmoid(features).mean(); task = task + live; "
        "term = 2 * ((features > 0).float().mean() - live).detach()"
    ),
    "the value of another dead term's live one is corrected": (
        "live = torch.sigmoid(features).mean(); task = task + live - live.detach(); "
        "term = (features - centre).pow(2).mean().detach()"
    ),
    "straight through": (
        "hard = (features > 0).float(); term = (hard - features.detach() + features).pow(2).mean()"
    ),
    "straight through, as terms of the loss": (
        "soft = features.sigmoid(); term = ((soft > 0.5).float() - soft.detach() + soft).mean()"
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
        "dist = torch.distributions.Normal(features, features.exp()); z = dist.sample(); "
        "task = task - dist.log_prob(z).mean(); "
        "term = torch.distributions.Normal(centre, torch.ones(5, 4)).log_prob(z).mean()"
    ),
    "made under no_grad": (
        "frozen = torch.no_grad()\n    with frozen: wanted = net(x).softmax(1)\n"
        "    term = (wanted * wanted.log()).sum(1).mean()"
    ),
    "both sides of a codebook of constants": (
        "q = codes[torch.cdist(features, codes).argmin(1)]; "
        "task = task + F.mse_loss(features, q); term = F.mse_loss(features.detach(), q)"
    ),
    "both sides of a target of constants": (
        "task = task + F.mse_loss(features, centre); term = F.mse_loss(features.detach(), centre)"
    ),
    "old and new": (
        "new = torch.distributions.Normal(features, 1.0).log_prob(centre); "
        "old = torch.distributions.Normal(net(x + 1), 1.0).log_prob(centre).detach(); "
        "term = (old - new).mean()"
    ),
    "one loss less another": (
        "clean = F.mse_loss(net(x), centre); term = F.mse_loss(features, centre) - clean.detach()"
    ),
    "a density with its own parameters held": (
        "scale = features.exp(); z = features + scale * torch.randn(5, 4); "
        "term = (((z - features.detach()) / scale.detach()).pow(2) + scale.detach().log()).mean()"
    ),
    "a loss that is walked by itself": (
        "own = (net(x) - centre).pow(2).mean(); own.backward(); term = own.detach()"
    ),
    "a loss that is walked by itself later": (
        "own = (net(x) - centre).pow(2).mean(); term = own.item(); (task + own).backward(retain_graph=True)"
    ),
    "a baseline of the turn before": "term = shown[-1] if shown else 0.0; shown.append(task.item())",
    "how many pass a threshold": "term = (features > 0.5).float().mean()",
    "what is the largest is taken off and put back": (
        "top = features.max(1)[0].detach(); "
        "term = (top + (features - top[:, None]).exp().sum(1).log() - features[:, 0]).mean()"
    ),
    "who is easy, and how many": (
        "each = (features - centre).pow(2).mean(1); easy = (each.detach() < 1).float(); "
        "term = (easy * each).sum() - 0.5 * easy.sum()"
    ),
    "a plan that is held, and its entropy": (
        "cost = torch.cdist(features, codes); plan = (-cost.detach()).softmax(1); "
        "term = (plan * cost).sum() - 0.1 * (plan * plan.log()).sum()"
    ),
    "one phase and another": (
        "other = features.abs().mean(); phase = float(torch.rand(())) < 0.5; "
        "task, term = (task, other.detach()) if phase else (task.detach(), other)"
    ),
    "a constant of a certain size": "term = torch.ones_like(features).mean()",
    "a weight of what learns": "term = (task / task.detach()) * features.abs().mean()",
    "an advantage": "term = -(head(features).log_softmax(1)[:, 0] * critic(features).detach()[:, 0]).mean()",
    "a margin where a mask holds": (
        "far = (features - centre).norm(dim=1); near = far < 1; "
        "term = (near.float() * far + (far >= 1).float() * 2.0).mean()"
    ),
    "it has a graph": "term = (features.detach() - centre + net(x)).pow(2).mean()",
    "beside the loss": "shown.append((features - centre).norm().detach()); term = features.abs().mean()",
}


@pytest.mark.parametrize("term", BROKEN.values(), ids=BROKEN.keys())
def test_a_term_that_teaches_nothing(term: str) -> None:
    assert len(culprits(NETS.format(term=term), "severed_term")) == 1


@pytest.mark.parametrize("term", CHOSEN.values(), ids=CHOSEN.keys())
def test_a_term_of_what_has_no_derivative(term: str) -> None:
    assert len(culprits(NETS.format(term=term), "non_differentiable_loss")) == 1


@pytest.mark.parametrize("term", HEALTHY.values(), ids=HEALTHY.keys())
def test_a_term_that_is_meant(term: str) -> None:
    kinds = {one.kind for one in analysis(NETS.format(term=term)).defects}
    assert kinds.isdisjoint({"severed_term", "non_differentiable_loss"})


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(
    "term",
    [*BROKEN.values(), *CHOSEN.values(), *HEALTHY.values()],
    ids=[*BROKEN.keys(), *CHOSEN.keys(), *HEALTHY.keys()],
)
def test_what_torch_says_of_a_term(term: str) -> None:
    pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(compile(whole(NETS.format(term=term)), "case.py", "exec"), space)
    if term not in HEALTHY.values():
        assert not getattr(space["term"], "requires_grad", False)


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
    ("live", "expected"),
    [
        ("surrogate", []),
        ("elsewhere.same(surrogate) + net.weight.norm()", ["suspect"]),
        ("elsewhere.loss() + net.weight.norm()", ["certain"]),
        ("net.weight.norm()", ["certain"]),
    ],
)
def test_what_may_be_the_term_whose_value_is_corrected(live: str, expected: list[str]) -> None:
    found = [one for one in analysis(UNSURE.format(live=live)).defects if one.kind == "severed_term"]
    assert [certainty_of(one.lean) for one in found] == expected


WALKED = """
import elsewhere

net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters())
out = net(torch.randn(5, 4))
own = out.pow(2).mean()
{between}
loss = out.abs().mean() + own.detach()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("between", "expected"),
    [("", ["likely"]), ("elsewhere.keep(own)", []), ("print(own)", ["likely"]), ("own.backward()", [])],
)
def test_who_may_walk_what_was_cut_off(between: str, expected: list[str]) -> None:
    found = [one for one in analysis(WALKED.format(between=between)).defects if one.kind == "severed_term"]
    assert [certainty_of(one.lean) for one in found] == expected


TAKEN = """
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
optimizer = torch.optim.Adam(actor.parameters())
critic_optimizer = torch.optim.Adam(critic.parameters())
for _ in range(2):
    state = torch.randn(8, 4)
    action = actor(state).tanh()
    q = critic(torch.cat([state, action], 1))
    critic_optimizer.zero_grad()
    (critic(torch.cat([state, action.detach()], 1)) - 1).pow(2).mean().backward()
    critic_optimizer.step()
    optimizer.zero_grad()
    ({loss}).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        pytest.param("(action.abs().sum(1, keepdim=True) - q.detach()).mean()", "suspect", id="a difference"),
        pytest.param("(-q.detach() + action.abs().sum(1, keepdim=True)).mean()", "suspect", id="turned"),
        pytest.param("action.abs().mean() - q.detach().mean()", "likely", id="of two whole terms"),
        pytest.param("action.abs().mean() + (q.detach() - 1).mean()", "likely", id="of it and a number"),
        pytest.param("(action.abs().sum(1, keepdim=True) + q.detach()).mean()", "likely", id="a sum"),
    ],
)
def test_a_difference_may_be_one_to_a_target(loss: str, expected: str) -> None:
    found = [one for one in analysis(TAKEN.format(loss=loss)).defects if one.kind == "severed_term"]
    assert [certainty_of(one.lean) for one in found] == [expected]
    assert all(one.told(Cut).shared for one in found)


STEP = """
net, other = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
others = torch.optim.SGD(other.parameters(), lr=0.1)
by_hand = {flag}
for _ in range(2):
    x, y = torch.randn(5, 4), torch.randn(5, 4)
    others.zero_grad()
    (other(net(x).detach()) - y).pow(2).mean().backward()
    others.step()
    out = net(x)
    task = F.mse_loss(out, y)
    {term}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ON_PURPOSE = {
    "the same value held as a part of another term": (
        "loss = (out - out.amax().detach()).exp().sum().log() + out.amax().detach()"
    ),
    "one mean is held against another": "loss = out.mean() - net(y).mean().detach()",
    "the gradients of the other network are thrown away": (
        "loss = other(y).pow(2).mean().detach() + other(out).abs().mean()"
    ),
}
PERHAPS = {
    "a penalty on the weights, for show": (
        "loss = task + 0.1 * sum(p.detach().pow(2).sum() for p in net.parameters())"
    ),
    "a flag decides it": """extra = out.abs().mean()
    if by_hand: extra = extra.detach()
    loss = task + extra""",
    "a flag adds it for what is printed": """extra, loss = out.abs().mean(), task
    if by_hand: loss = loss + 0.1 * extra.detach()""",
    "a flag decides it in one expression": (
        "extra = out.abs().mean(); loss = task + (extra.detach() if by_hand else extra)"
    ),
}


@pytest.mark.parametrize("term", ON_PURPOSE.values(), ids=ON_PURPOSE.keys())
def test_a_term_is_held_on_purpose(term: str) -> None:
    found = analysis(STEP.format(term=term, flag=True)).defects
    assert not [one for one in found if one.kind == "severed_term"]


@pytest.mark.parametrize("term", PERHAPS.values(), ids=PERHAPS.keys())
def test_a_term_may_be_held_on_purpose(term: str) -> None:
    found = [one for one in analysis(STEP.format(term=term, flag=True)).defects if one.kind == "severed_term"]
    assert [certainty_of(one.lean) for one in found] == ["suspect"]


def test_what_trains_all_of_it_already_then_gets_another_gradient() -> None:
    whole = STEP.format(term="loss = task + out.abs().mean().detach()", flag=True)
    facts = [one.told(Cut) for one in analysis(whole).defects if one.kind == "severed_term"]
    assert [one.taught for one in facts] == [True]
