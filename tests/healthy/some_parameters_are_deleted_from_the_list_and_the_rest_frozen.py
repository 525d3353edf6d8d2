# The last two aren't in the list any more when it is frozen.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
params = list(net.parameters())
del params[-2:]
for p in params:
    p.requires_grad = False
net(torch.randn(2, 4)).mean().backward()
