# GF204: all of the set are frozen
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for p in set(net.parameters()):
    p.requires_grad_(False)
net(torch.randn(2, 4)).mean().backward()
