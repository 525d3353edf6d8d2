# GF204: the list has all of them
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
head = set(map(id, net[1].parameters()))
base = [p for p in net.parameters()]
for p in base:
    p.requires_grad = False
opt = torch.optim.SGD(filter(lambda p: id(p) in head, net.parameters()), lr=0.1)
for i in range(3):
    opt.zero_grad()
    net(torch.randn(2, 4)).mean().backward()
    opt.step()
