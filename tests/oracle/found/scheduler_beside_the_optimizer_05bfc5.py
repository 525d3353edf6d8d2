# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, 1)
for turn in range(3):
    loss = net(torch.rand(3, 4)).pow(2).mean()
    loss.backward()
    opt.step()
    schedule.step()
