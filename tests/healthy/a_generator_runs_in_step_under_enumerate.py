# A generator makes each loss after the step of the turn before.
import torch
from torch import nn


def losses(net, data):
    for x in data:
        yield net(x).pow(2).mean()


net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i, loss in enumerate(losses(net, [torch.randn(8, 4) for _ in range(4)])):
    opt.zero_grad()
    loss.backward()
    opt.step()
