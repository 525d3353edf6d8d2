# map calls its function for each turn, after the step of the turn before.
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def compute(x):
    return net(x).pow(2).mean()


for loss in map(compute, [torch.randn(8, 4) for _ in range(4)]):
    opt.zero_grad()
    loss.backward()
    opt.step()
