# GF201: the assert holds, so that the loss without a graph comes to backward
import torch
from torch import nn


def run(x, mode):
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if mode == "a":
        loss = net(x).pow(2).mean()
    else:
        loss = net(x).detach().mean()
        assert mode, mode
    opt.zero_grad()
    loss.backward()
    opt.step()


import json

for mode in json.loads('["b"]'):
    run(torch.randn(2, 4), mode)
