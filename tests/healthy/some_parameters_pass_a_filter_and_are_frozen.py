# The last layer doesn't pass the filter and still learns.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
for n, p in filter(lambda kv: not kv[0].startswith("1"), net.named_parameters()):
    p.requires_grad_(False)
net(torch.randn(2, 4)).mean().backward()
