# flags 2
# ruff: noqa
# mypy: ignore-errors
import os
import torch
from torch import nn
flag1 = os.environ.get('GRADFIX_ORACLE')
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
state = torch.zeros(3, 4)
c4 = torch.randn(3, 4)
out = net(c4 + state)
if flag1:
    out = out * c4
else:
    pass
loss = (out * out).sum()
loss.backward(retain_graph=True)
opt.step()
loss.backward()
