# GF203: fail() comes back
import torch
from torch import nn


def fail(msg):
    print(msg)


def run(net, opt, x, kind):
    if kind == "a":
        loss = net(x).pow(2).mean()
    else:
        with torch.no_grad():
            loss = net(x).mean()
        fail("kind")
    opt.zero_grad()
    loss.backward()
    opt.step()


import json

for kind in json.loads('["a", "b"]'):
    net = nn.Linear(4, 1)
    run(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.randn(2, 4), kind)
