# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
class Net1(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Dropout(0.5)
        self.l2 = nn.Hardswish(inplace=True)
    def forward(self, x):
        h = x
        h = F.relu(self.l1(h))
        h = self.l2(h)
        if h.dim() == 2:
            h = x
        return h
# behind the file, unseen by the tape:
net = Net1()
net(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()
