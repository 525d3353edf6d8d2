# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
import torch.nn.functional as F
from torch import nn
flag1 = os.environ.get('GRADFIX_ORACLE')
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.SiLU(inplace=True), nn.ELU()))
opt = torch.optim.Adam(list(net.parameters()))
for turn1 in range(3):
    c2 = torch.full([3, 4], 0.5)
    out = net(c2)
    x3 = (c2)
    x4 = x3
    if flag1:
        x4 = 1
    loss = F.mse_loss(out, x4)
    opt.step()
    loss.backward()
