"""Healthy programs that lean on code which isn't at hand: nothing may be said about them."""

from __future__ import annotations

import pytest

from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

IMPORTS = "import torch\nfrom torch import nn\n"
HEALTHY = {
    "methods between which anything may happen": """
class Trainer:
    def __init__(self, optimizer, net):
        self.optimizer, self.net = optimizer, net
    def learn(self, batch):
        self.net(batch).sum().backward()
    def begin(self):
        self.optimizer.zero_grad()
    def finish(self, closure):
        self.optimizer.step()
""",
    "an item put into what may be a list": """
class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(3, 3)
    def forward(self, pieces):
        for i in range(2):
            pieces[i] = self.scale(pieces[i] * pieces[i])
        return pieces
""",
    "a batch augmented by a strength that an earlier score tuned": """
from net import Critic, augment, tuner
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters())
for batch in stream():
    aug = augment(batch, p) if flag else batch
    score = critic(aug)
    optimizer.zero_grad()
    score.mean().backward()
    optimizer.step()
    if flag:
        p = tuner.tune(score)
    batch.requires_grad = True
    aug = augment(batch, p) if flag else batch
    score = critic(aug)
    slope, = torch.autograd.grad(score.sum(), batch, create_graph=True)
    optimizer.zero_grad()
    (slope.pow(2).mean() + 0 * score[0]).backward()
    optimizer.step()
""",
    "entries of a graph object that its own method computes": """
from graphs import sum_neighbours
class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
    def forward(self, g, x, norm):
        g.ndata["h"] = x
        g.ndata["a"] = self.a(x)
        g.update_all(sum_neighbours)
        h = g.ndata["h"]
        h *= norm
        return h
""",
    "a score that a graph object of the batch computes from what was put into it": """
from graphs import dot, loader
model = nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters())
for graph, features in torch.utils.data.DataLoader(loader):
    graph = graph.to("cpu")
    with graph.local_scope():
        graph.ndata["h"] = model(features)
        graph.apply_edges(dot)
        score = graph.edata["score"]
    loss = nn.functional.binary_cross_entropy_with_logits(score, torch.ones_like(score))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "entries by name under an attribute called data": """
class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(3, 3)
    def forward(self, g, users):
        h = self.w(g.nodes["u"].data["sum"])
        g.nodes["u"].data["h"] = users
        return h, g.nodes["u"].data["h"]
""",
    "a class of another package that calls its tensor data": """
from rotations import Quaternion
p = torch.ones(4, requires_grad=True)
q = Quaternion(nn.Parameter(p))
result = q * q * 5
result.data.sum().backward()
""",
    "a grad mode whose name comes from a package that isn't at hand": """
from everything import *
class Net(Module):
    def __init__(self):
        self.lin = nn.Linear(3, 1)
    def forward(self, x):
        return self.lin(x)
model = Net().cuda()
def update(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(0.1 * p.grad)
            p.grad.zero_()
@torch.no_grad()
def shrink():
    for p in model.parameters():
        p.mul_(0.9)
for x, y in data:
    update(x, y)
    shrink()
""",
    "features that a method of the model prepares once": """
from nets import SignedNet
model = SignedNet(3)
optimizer = torch.optim.Adam(model.parameters())
features = model.spectral_features(edges)
for epoch in range(9):
    optimizer.zero_grad()
    loss = model(features, edges).mean()
    loss.backward()
    optimizer.step()
""",
    "rewards that the world gives for an action taken as a number": """
from torch.distributions import Categorical
from worlds import world
policy = nn.Linear(4, 2)
critic = nn.Linear(4, 1)
rewards = []
for t in range(1000):
    action = Categorical(logits=policy(state)).sample().item()
    state, reward, done = world.step(action)
    rewards.append(reward)
    if done:
        break
total, returns = 0, []
for r in rewards[::-1]:
    total = r + 0.9 * total
    returns.insert(0, total)
for i in range(len(returns)):
    loss = returns[i] - critic(torch.ones(4))
    loss.backward()
""",
    "a weight for each step's loss, in one of two arms, times a loss that isn't known": """
from nets import task_loss
optimizer = torch.optim.Adam(parameters)
importance = torch.ones(3).to("cuda")
for batch in batches:
    losses = []
    for step in range(5):
        loss = task_loss(batch)
        if several:
            losses.append(importance[step] * loss)
        elif step == last:
            losses.append(loss)
    total = torch.mean(torch.stack([torch.sum(torch.stack(losses))]))
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
""",
    "as many losses as loaders that are zipped": """
from losses import criterion
def pairs(n):
    return [(i, j) for i in range(n) for j in range(i, n)]
def train(loaders, model, optimizer):
    for batches in zip(*loaders):
        index = pairs(len(batches) - 1)
        total = torch.zeros(1)
        for i in range(len(index)):
            total = total + criterion(model, batches[index[i][0]])
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
""",
    "a penalty that is backpropagated where it has a graph": """
from nets import quantizer
total = torch.tensor(0.0)
if flag:
    total += quantizer.penalty
if total.requires_grad:
    total.backward(retain_graph=True)
""",
    "a field of a long tuple that its class names": """
rows = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
where = rows.index(3)
""",
}


@pytest.mark.parametrize("body", HEALTHY.values(), ids=HEALTHY)
def test_nothing_is_said_of(body: str) -> None:
    head = "" if "import *" in body else IMPORTS
    source = parse("program.py", (head + body).encode())
    assert isinstance(source, Source)
    shown = [d for d in analyse(source).defects if d.impact != "style"]
    assert not shown
