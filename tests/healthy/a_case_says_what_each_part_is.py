# Only the case without a graph has `train` false.
import torch
from torch import nn


def run(net, opt, x, kind, train):
    match (kind, train):
        case ("a", True):
            loss = net(x).pow(2).mean()
        case ("a", False):
            with torch.no_grad():
                loss = net(x).pow(2).mean()
        case _:
            raise ValueError(kind)
    if train:
        opt.zero_grad()
        loss.backward()
        opt.step()


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
run(net, opt, torch.randn(2, 4), "a", True)
run(net, opt, torch.randn(2, 4), "a", False)
