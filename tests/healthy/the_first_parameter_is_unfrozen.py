# next() of the parameters is the first of them.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in net.parameters():
    p.requires_grad = False
next(net.parameters()).requires_grad = True
net(torch.randn(5, 4)).pow(2).mean().backward()
