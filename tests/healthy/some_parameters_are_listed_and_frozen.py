# The biases aren't in the list and still learn.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
frozen = [p for n, p in net.named_parameters() if "bias" not in n]
for p in frozen:
    p.requires_grad = False
net(torch.randn(2, 4)).mean().backward()
