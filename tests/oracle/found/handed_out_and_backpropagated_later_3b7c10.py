# flags 0, unknown callee
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
from mystery import blur
class Net4(nn.Module):
    def __init__(self, residual=True):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.l2 = nn.ReLU(inplace=True)
        self.many = [nn.SiLU(inplace=True), nn.Linear(4, 4), nn.Hardswish(inplace=True)]
    def forward(self, x):
        h = self.l0(x)
        h = self.l2(h)
        x6 = blur(h)
        for layer in self.many:
            h = layer(h)
        return x
# behind the file, unseen by the tape:
net = Net4()
net(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()
