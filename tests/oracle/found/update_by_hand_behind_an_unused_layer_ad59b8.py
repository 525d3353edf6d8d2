# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
class Net1(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.many = nn.ModuleList([nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 4)])
    def forward(self, x):
        h = x
        for layer in self.many:
            h = layer(h)
        return h
net = Net1()
for turn in range(3):
    loss = net(torch.randn(3, 4)).pow(2).mean()
    loss.backward()
    for p in net.parameters():
        if p.grad is not None:
            p.data.sub_(p.grad * 0.1)
