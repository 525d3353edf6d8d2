# What isn't in the list that is frozen learns.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
decay, rest = [], []
for n, p in net.named_parameters():
    (decay if p.ndim > 1 else rest).append(p)
for p in decay:
    p.requires_grad_(False)
net(torch.randn(2, 4)).mean().backward()
