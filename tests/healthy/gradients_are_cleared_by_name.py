# The names of the dict are those of all parameters.
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ps = dict(net.named_parameters())
for i in range(3):
    net(torch.randn(2, 4)).pow(2).mean().backward()
    opt.step()
    for n in ps:
        ps[n].grad = None
