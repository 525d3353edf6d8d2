# GF302: what had its backward stays in the list
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
pending = []
for i in range(4):
    pending.append(net(torch.randn(2, 4)).pow(2).mean())
    for l in pending[:]:
        opt.zero_grad()
        l.backward()
        opt.step()
        pending.count(l)
