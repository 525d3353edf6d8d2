# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
def train(model, loader, optimizer):
    for step, (batch, target) in enumerate(loader):
        out = model(batch)
        torch.set_grad_enabled(False)
        v1 = out.view(3, 4)
        torch.set_grad_enabled(True)
        loss = (v1 ** 2).sum()
        loss.backward(retain_graph=True)
        optimizer.zero_grad()
        optimizer.step()
# behind the file, unseen by the tape:
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
loader = [(torch.randn(3, 4), torch.rand(3, 4)) for _ in range(3)]
train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
