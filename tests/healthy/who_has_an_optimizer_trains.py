# bool(opt) holds exactly where there is an optimizer.
import torch
from torch import nn


def run(net, loader, opt=None):
    training = bool(opt)
    net.train(training)
    for x in loader:
        if training:
            loss = net(x).pow(2).mean()
        else:
            with torch.no_grad():
                loss = net(x).pow(2).mean()
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
run(net, [torch.randn(2, 4)] * 2, opt)
run(net, [torch.randn(2, 4)] * 2)
