# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
class Net1(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.scale = torch.ones(4)
    def forward(self, x):
        h = self.l0(x)
        h = h + self.scale
        x2 = h
        with torch.no_grad():
            v3 = x2.t().reshape(3, 4)
        v3 += 1
        return h
# behind the file, unseen by the tape:
net = Net1()
net(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()
