# flags 0, unknown callee
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
from mystery import blur
class Net8(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.l2 = nn.Linear(4, 4)
    def forward(self, x):
        h = self.l0(x)
        h += self.l2(h)
        x9 = blur(h)
        return x
# behind the file, unseen by the tape:
net = Net8()
net(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()
