# The dict holds the parameters themselves.
import torch
from torch import nn

net = nn.Linear(4, 2)
o = torch.optim.SGD(net.parameters(), 0.1)
ps = dict(net.named_parameters())
for i in range(3):
    net(torch.randn(6, 4)).pow(2).mean().backward()
    o.step()
    for p in ps.values():
        p.grad = None
