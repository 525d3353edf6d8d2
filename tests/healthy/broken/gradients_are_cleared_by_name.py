# GF401: the names are gone through, and nothing is cleared
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ps = dict(net.named_parameters())
for i in range(3):
    net(torch.randn(2, 4)).pow(2).mean().backward()
    opt.step()
    for n in ps:
        print(ps[n].shape)
