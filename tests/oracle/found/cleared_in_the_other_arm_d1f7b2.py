# flags 2
# ruff: noqa
# mypy: ignore-errors
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
flag0 = len(sys.argv) > 5
flag1 = os
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for turn5 in range(3):
    c6 = torch.full([3, 4], 0.5)
    opt.zero_grad(set_to_none=False)
    out = net(c6)
    if flag0:
        v7 = out
        if flag1:
            n8 = v7.sum().item()
            x9 = n8
            out = x9 ** out.abs()
        else:
            pass
    else:
        c6.requires_grad_()
    loss = F.mse_loss(out, c6)
    opt.step()
    loss.backward()
