# GF204: a detached twin of the parameter is unfrozen
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in net.parameters():
    p.requires_grad = False
n, p = list(net.named_parameters())[-1]
p = p.detach()
p.requires_grad = True
net(torch.randn(5, 4)).pow(2).mean().backward()
