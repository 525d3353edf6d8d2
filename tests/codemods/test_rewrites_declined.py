"""Findings of real programs whose obvious rewrite would be wrong: they are shown, and nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

EVERY = Config(Path(), select=("ALL",))
HEAD = "import torch\nfrom torch import nn\n"
LEFT = {
    "a module that is called for what it writes": (
        "GF104",
        """
weight = nn.Parameter(torch.randn(3, 4))
activate = nn.LeakyReLU(0.1, True)
loss = nn.functional.gelu(weight).mean()
loss.backward(retain_graph=True)
with torch.no_grad():
    activate(weight)
loss.backward()
""",
    ),
    "a sample that the test of its own loop differentiates for": (
        "GF204",
        """
energy = nn.Linear(3, 1)
sample = torch.randn(4, 3)
while torch.autograd.grad(energy(sample).pow(2).sum(), sample)[0].norm() > 1:
    sample = sample.detach() * 0.5
""",
    ),
    "a step whose gradients a helper clears before the later backward": (
        "GF105",
        """
G, D = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
G_solver = torch.optim.Adam(G.parameters())
D_solver = torch.optim.Adam(D.parameters())
def reset_grad():
    G.zero_grad()
    D.zero_grad()
for x in torch.ones(3, 4, 2):
    fake = D(G(x)).exp().sum()
    D_loss = fake - D(x).sum()
    D_loss.backward(retain_graph=True)
    D_solver.step()
    reset_grad()
    G_loss = -fake
    G_loss.backward()
    G_solver.step()
    reset_grad()
""",
    ),
    "a clip of every micro-batch, while the scaler steps after some": (
        "GF404",
        """
model = nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler()
for i, x in enumerate(torch.ones(8, 4, 2)):
    scaler.scale(model(x).sum() / 4).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if i % 4 == 3:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
""",
    ),
    "scaled gradients of an optimizer that only its wrapper can name": (
        "GF404",
        """
class Schedule:
    def __init__(self, optimizer):
        self.optimizer = optimizer
    def step(self):
        self.optimizer.step()
    def zero_grad(self):
        self.optimizer.zero_grad()
model = nn.Linear(2, 2)
def train(model, schedule, scaler):
    for x in torch.ones(3, 4, 2):
        schedule.zero_grad()
        scaler.scale(model(x).sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        schedule.step()
train(model, Schedule(torch.optim.Adam(model.parameters())), torch.amp.GradScaler())
""",
    ),
    "a parameter that an attribute, which holds a result later, takes without its gradient": (
        "GF208",
        """
class Evolving(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.ones(1, 2, 2))
        self.weight = None
        self.cell = nn.GRU(2, 2)
    def forward(self, x):
        if self.weight is None:
            self.weight = self.first.data
        _, self.weight = self.cell(self.weight, self.weight)
        return x @ self.weight.squeeze(0)
model = Evolving()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(3, 2)).sum().backward()
optimizer.step()
""",
    ),
    "a mean by numpy that keeps all dimensions, which torch does along an axis only": (
        "GF202",
        """
import numpy as np
model = nn.Linear(2, 1)
pred, y = model(torch.ones(4, 2)), torch.ones(4, 1)
loss = torch.tensor(np.mean((pred.detach().numpy() - y.numpy()) ** 2, keepdims=True), requires_grad=True)
loss.backward()
""",
    ),
    "numbers that another function returns in a list, within a tensor that is copied again": (
        "GF202",
        """
policy = nn.Linear(4, 2)
def episode():
    log_probs, rewards = [], []
    for x in torch.ones(3, 4):
        log_probs.append(policy(x).log_softmax(0)[0].item())
        rewards.append(1.0)
    return log_probs, rewards
log_probs, rewards = episode()
loss = torch.tensor(-(torch.tensor(log_probs) * torch.tensor(rewards)).sum(), requires_grad=True)
loss.backward()
""",
    ),
    "a largest entry of each row, which torch returns with its place": (
        "GF202",
        """
model = nn.Linear(2, 3)
best = model(torch.ones(4, 2)).detach().numpy().max(axis=1)
loss = torch.tensor(best.sum(), requires_grad=True)
loss.backward()
""",
    ),
    "a copy of which gradients are asked for what it isn't made of": (
        "GF206",
        """
def derivative(f, x):
    again = f.clone().detach().requires_grad_(True)
    fresh = x.clone().detach().requires_grad_(True)
    return torch.autograd.grad(again, fresh, torch.ones_like(f), allow_unused=True)[0]
x = torch.ones(3, requires_grad=True)
derivative(x * 2, x)
""",
    ),
    "a constant that stands for the loss until somebody has written it": (
        "GF204",
        """
def loss_of(pred, y):
    loss = torch.zeros(1)
    # your code here
    return loss
model = nn.Linear(2, 1)
loss_of(model(torch.ones(4, 2)), torch.ones(4, 1)).backward()
""",
    ),
    "an array's mean with all its dimensions kept, behind a switch": (
        "GF206",
        """
import numpy as np
def rmse(pred, target):
    return torch.from_numpy(np.sqrt(((pred.detach().numpy() - target.numpy()) ** 2).mean(keepdims=True)))
model = nn.Linear(2, 1)
loss = rmse(model(torch.ones(4, 2)), torch.ones(4, 1))
loss.requires_grad = True
loss.backward()
""",
    ),
}


@pytest.mark.parametrize(("code", "body"), LEFT.values(), ids=LEFT)
def test_is_shown_and_left(code: str, body: str) -> None:
    before = (HEAD + body).encode()
    outcome = fix("program.py", before, Plan(replace(EVERY, unsafe_fixes=True)))
    assert code in {finding.code for finding in outcome.findings}
    assert code in {finding.code for finding in outcome.remaining}
    assert code not in {finding.code for finding in outcome.applied}


def test_a_switch_on_a_result_is_said_of_the_tensor_itself() -> None:
    body = LEFT["an array's mean with all its dimensions kept, behind a switch"][1]
    (finding,) = fix("program.py", (HEAD + body).encode(), Plan(EVERY)).findings
    assert finding.message.endswith("`loss` has lost its graph, nothing behind it learns")


def test_an_encoder_before_a_codebook_is_told_of_the_estimator() -> None:
    body = """
encoder, decoder, codes = nn.Linear(4, 8), nn.Linear(8, 4), nn.Embedding(16, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codes.parameters()])
for x in torch.ones(2, 5, 4):
    nearest = torch.cdist(encoder(x), codes.weight).argmin(dim=1)
    optimizer.zero_grad()
    (decoder(codes(nearest)) - x).pow(2).mean().backward()
    optimizer.step()
"""
    (finding,) = fix("program.py", (HEAD + body).encode(), Plan(EVERY)).findings
    assert finding.code == "GF208"
    assert finding.decline.endswith("go on with y + (x - x.detach())")


MENDED = {
    "an optimizer that is an argument, steps under a test and is never cleared": (
        "GF401",
        """
def train(model, loader, optimizer, criterion, every):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / every).backward()
        if (i + 1) % every == 0:
            optimizer.step()
""",
    ),
    "a copy of what gradients are asked for": (
        "GF206",
        """
x = torch.ones(3, requires_grad=True)
again = (x * 2).detach().requires_grad_(True)
print(torch.autograd.grad(again, x, torch.ones(3), allow_unused=True)[0])
""",
    ),
    "a constant of which somebody reads the gradient": (
        "GF204",
        """
x = torch.zeros(1)
(x * 2).backward()
print(x.grad)
""",
    ),
}


@pytest.mark.parametrize(("code", "body"), MENDED.values(), ids=MENDED)
def test_is_mended_where_somebody_gets_the_gradient(code: str, body: str) -> None:
    outcome = fix("program.py", (HEAD + body).encode(), Plan(EVERY))
    assert [finding.code for finding in outcome.applied] == [code]
    assert outcome.remaining == ()
