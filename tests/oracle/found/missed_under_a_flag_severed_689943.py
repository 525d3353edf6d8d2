# flags 2
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
flag1 = bool(os.environ.get('GRADFIX_ORACLE'))
def f1(a, b):
    b += b
    if flag1:
        x2 = a.type_as(a)
    else:
        torch.set_grad_enabled(False)
        v3 = a[...]
        torch.set_grad_enabled(True)
    v4 = b.t().flatten()
    return F.dropout(a, p=0.0)
class Net5(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.l1 = nn.Sigmoid()
    def forward(self, x):
        h = self.l0(x)
        h = F.relu(self.l1(h))
        return h * x
net = Net5()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn6 in range(2):
    c7 = torch.randn(3, 4)
    opt.zero_grad(set_to_none=False)
    out = net(c7)
    loss = F.mse_loss(out, c7)
    loss.backward()
    out = net(c7)
    x8 = torch.exp(out.norm(dim=0))
    if not flag1:
        out.data += 1
        if flag0:
            x9 = (x8.masked_fill(x8 > 0, 0.0)).clone()
            out = c7 / c7.std()
    else:
        x10 = torch.maximum(out, out)
    loss = (out * out).sum()
    loss.backward()
    opt.step()
