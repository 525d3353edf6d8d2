# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
from torch import nn
flag0 = len(sys.argv) > 5
class Net7(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
    def forward(self, x):
        h = self.l0(x)
        if flag0:
            pass
        else:
            h.detach_()
        return h
net = Net7()
loss = net(torch.ones(3, 4))
loss.backward()
