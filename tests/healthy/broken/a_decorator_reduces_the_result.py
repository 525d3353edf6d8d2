# GF301: the decorator only doubles
import functools

import torch
from torch import nn


def mean(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) * 2

    return inner


@mean
def mse(p, t):
    return (p - t) ** 2


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    opt.zero_grad()
    loss = mse(net(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    opt.step()
