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
        self.l1 = nn.Softplus()
    def forward(self, x):
        h = self.l0(x)
        h += self.l1(h)
        return h
net = Net7()
w11 = nn.Parameter(torch.randn(3, 4))
x12 = net(w11)
x13 = w11
for k14 in range(3):
    if flag0:
        continue
    x13 = x12
loss15 = (x13 * x13).sum()
loss15.backward()
