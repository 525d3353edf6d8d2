# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
from torch import nn
flag0 = len(sys.argv) > 5
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn1 in range(2):
    c2 = torch.full([3, 4], 0.5)
    out = net(c2)
    if flag0:
        out = 3
    loss = (out * out).sum()
    opt.step()
    loss.backward()
