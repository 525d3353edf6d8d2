# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(4, 4)
for turn in range(3):
    net(torch.rand(3, 4)).pow(2).mean().backward()
    for p in net.parameters():
        p.data.sub_(p.grad * 0.1)
