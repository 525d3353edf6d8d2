# flags 1
# ruff: noqa
# mypy: ignore-errors
import math
import os
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
flag0 = len(sys.argv) > 5
def f1(a, b):
    x2 = (a * 2)
    with torch.no_grad():
        v3 = x2[1:]
    v3 /= 2
    return torch.cumprod(x2, -1)
class Net4(nn.Module):
    def __init__(self, residual=True):
        super().__init__()
        self.residual = residual
        self.l0 = nn.Linear(4, 4)
        self.l1 = nn.Softplus()
    def forward(self, x):
        h = self.l0(x)
        h = F.relu(self.l1(h))
        if self.residual:
            h = h + x
        return h
class Net5(nn.Module):
    def __init__(self, residual=True):
        super().__init__()
        self.residual = residual
        self.l0 = nn.Linear(4, 4)
        self.l1 = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0))
        self.l2 = nn.PReLU()
        self.l3 = nn.BatchNorm1d(4, affine=False)
    def forward(self, x):
        h = self.l0(x)
        h = self.l1(h) + h
        p6, p7 = torch.split(h, [1, 3], dim=1)
        h = F.relu(self.l2(h))
        h += self.l3(h)
        x8 = f1(h, x)
        if self.residual:
            h.add_(x)
        return h
net = Net4()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for turn9 in range(3):
    c10 = torch.rand(3, 4)
    out = net(c10)
    with torch.inference_mode():
        z11 = c10 * 2
    x12 = z11.clone() * c10
    x13 = f1(x12, out)
    loss = (out * out).sum()
    net.zero_grad()
    loss.backward()
    opt.step()
