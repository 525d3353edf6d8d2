# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU()))
extra = torch.ones(4, requires_grad=True)
opt = torch.optim.SGD(list(net.parameters()) + [extra], lr=0.1)
for turn in range(2):
    opt.zero_grad()
    loss = net(torch.ones(3, 4)).sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
