"""What is one of several by a flag, or wrapped, or in a list that branches fill, is followed as itself."""

from __future__ import annotations

from typing import Any

import pytest
from short import analysis, culprits, whole

CHOSEN = """
flag = {flag}

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 3)
        self.act = {choice}

    def forward(self, x):
        h = self.act(self.one(x))
        {write}
        return self.one(h)

Block()(torch.randn(2, 3)).sum().backward()
"""
FLAG = "len(__name__) > 3"
WRAPPED = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen, self.dis = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.dis.parameters(), lr=0.1)

    def forward(self, z):
        fake = self.gen(z)
        return self.dis(fake.detach()).mean(), -self.dis({given}).mean()

pair = nn.DataParallel(Pair())
first, second = pair(torch.randn(4, 3))
first.backward()
pair.module.optimizer.step()
second.backward()
"""
FILLED = """
kind = __name__
enc = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))
one, two = nn.Linear(4, 1), nn.Linear(4, 1)
first = torch.optim.SGD([*enc.parameters(), *one.parameters()], lr=0.1)
rows, scores = [], []
for _ in range(2):
    mid = enc(torch.randn(5, 3))
    scores.append(one(mid))
    if kind == "top":
        rows.append({row}[:2] * 1)
    elif kind == "mean":
        rows.append({row}.mean(0, keepdim=True))
    elif kind != "last":
        rows.append({row} * 1)
torch.cat(scores).mean().backward(retain_graph=True)
first.step()
two(torch.cat(rows, 0)).mean().backward()
"""
DRAWN = """
net = nn.Linear(3, 4)
dist = torch.distributions.Normal(net(torch.randn(8, 3)), 1.0)
loss = -dist.log_prob(dist.rsample()).sum(-1){reduced}
loss.backward()
"""
ENTROPY = """
net = nn.Linear(3, 4)
dist = torch.distributions.{kind}(logits=net(torch.randn(8, 3)))
loss = -dist.entropy(){reduced}
loss.backward()
"""
BROKEN = {
    "an entropy for each row": ENTROPY.format(kind="Categorical", reduced=""),
    "an entropy for each number": ENTROPY.format(kind="Bernoulli", reduced=".sum(-1)"),
    "one of two layers": CHOSEN.format(
        flag=FLAG, choice="nn.Sigmoid() if flag else nn.Tanh()", write="h += 1"
    ),
    "one of two functions": CHOSEN.format(
        flag=FLAG, choice="F.relu if flag else torch.sigmoid", write="h *= 2"
    ),
    "a layer or a few": CHOSEN.format(
        flag=FLAG, choice="nn.Sequential(nn.Identity(), nn.ReLU()) if flag else nn.Tanh()", write="h += 1"
    ),
    "a function that is there": CHOSEN.format(flag=FLAG, choice="F.relu", write="h += self.act is not None"),
    "the module of a wrapping": WRAPPED.format(given="fake"),
    "a list that branches fill": FILLED.format(row="mid"),
    "a density for each of what was drawn": DRAWN.format(reduced=""),
}
HEALTHY = {
    "the mean of entropies": ENTROPY.format(kind="OneHotCategorical", reduced=".mean()"),
    "neither of which saves": CHOSEN.format(
        flag=FLAG, choice="nn.Identity() if flag else nn.Softplus()", write="h += 1"
    ),
    "out of place": CHOSEN.format(flag=FLAG, choice="nn.Sigmoid() if flag else nn.Tanh()", write="h = h + 1"),
    "written before it is saved": CHOSEN.format(
        flag=FLAG, choice="nn.Dropout(0.5) if flag else nn.Dropout(0.1)", write="h += 1"
    ),
    "the module of a wrapping, of other weights": WRAPPED.format(given="fake.clone()").replace(
        "self.dis.parameters()", "[torch.zeros(1, requires_grad=True)]"
    ),
    "a list that branches fill with what is cut off": FILLED.format(row="mid.detach()"),
    "one density": DRAWN.format(reduced=".mean()"),
}
RULES = (
    "inplace_overwrites_saved", "step_before_backward", "non_scalar_backward", "zero_grad_before_step",
    "missing_zero_grad",
)  # fmt: skip


def found(body: str) -> list[str]:
    return [line for rule in RULES for line in culprits(body, rule)]


def runs(body: str) -> None:
    space: dict[str, Any] = {"__name__": "__reached__"}
    exec(compile(whole(body), "case.py", "exec"), space)


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_a_defect_is_found_in(body: str) -> None:
    assert found(body)


@pytest.mark.parametrize("body", HEALTHY.values(), ids=HEALTHY.keys())
def test_nothing_is_said_of(body: str) -> None:
    assert found(body) == []


@pytest.mark.torch
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_torch_refuses(body: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError):
        runs(body)


@pytest.mark.torch
@pytest.mark.parametrize("body", HEALTHY.values(), ids=HEALTHY.keys())
def test_torch_accepts(body: str) -> None:
    pytest.importorskip("torch")
    runs(body)


NETWORKS = """
class Net(nn.Module):
    def __init__(self, n, depth):
        super().__init__()
        layers = []
        for d in range(depth):
            layers.append(nn.Linear(n, n))
            layers.append(nn.ReLU())
        layers.append(nn.Linear(n, n))
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in {layers}:
            x = layer(x)
        return x

class Trainer:
    def __init__(self, config):
        self.D = {made}
        self.G = Net(3, config.depth)
        self.D_optimizer = torch.optim.Adam(self.D.parameters())
        self.G_optimizer = torch.optim.Adam(self.G.parameters())

    def train(self):
        for _ in range(100):
            x = torch.randn(4, 3)
            self.D.zero_grad()
            (self.D(x).pow(2).mean() - self.D(self.G(x).detach()).mean()).backward()
            self.D_optimizer.step()
            self.G.zero_grad()
            self.D(self.G(x)).mean().backward()
            self.G_optimizer.step()
"""


@pytest.mark.parametrize(
    "made", ["Net(3, config.depth)", "Net(3, 4) if config.toy else Net(3, config.depth)"]
)
@pytest.mark.parametrize("layers", ["self.layers", "[*self.layers]"])
def test_a_later_turn_that_runs_fewer_layers_has_not_left_the_others_without_gradients(
    made: str, layers: str
) -> None:
    defects = analysis(NETWORKS.format(made=made, layers=layers)).defects
    assert [defect.kind for defect in defects if defect.certainty != "suspect"] == []
