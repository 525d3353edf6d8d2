# GF204: all are in the group that is frozen
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
groups = {"w": [], "b": []}
for n, p in net.named_parameters():
    groups["w"].append(p)
for p in groups["w"]:
    p.requires_grad = False
net(torch.randn(2, 4)).mean().backward()
