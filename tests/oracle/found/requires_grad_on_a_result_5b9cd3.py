# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
def train(model, loader, optimizer):
    for step, (batch, target) in enumerate(loader):
        out = model(batch)
        x1 = out
        y2 = x1.requires_grad_()
        y2.clamp_(-1, 1)
# behind the file, unseen by the tape:
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
loader = [(torch.randn(3, 4), torch.rand(3, 4)) for _ in range(3)]
train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
