# GF401: the decorator only prints
import torch
from torch import nn


def fresh(fn):
    def inner(net, opt, x):
        print("step")
        return fn(net, opt, x)

    return inner


@fresh
def train_step(net, opt, x):
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    train_step(net, opt, torch.randn(8, 4))
