# The object is as true as its flag.
import torch
from torch import nn


class Flag:
    def __init__(self, on):
        self.on = on

    def __bool__(self):
        return self.on


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
train = Flag(False)
for train.on in (False, True):
    with torch.set_grad_enabled(bool(train)):
        loss = net(torch.randn(1, 4)).pow(2).mean()
    if train:
        opt.zero_grad()
        loss.backward()
        opt.step()
