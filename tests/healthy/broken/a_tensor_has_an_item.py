# GF403: a tensor has no `items`, so that it is added with its graph
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.total = 0.0

    def add(self, v):
        if hasattr(v, "items"):
            v = v.item()
        self.total += v


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
meter = Meter()
for i in range(1000):
    loss = net(torch.randn(2, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.add(loss)
