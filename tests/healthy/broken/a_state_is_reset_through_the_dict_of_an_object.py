# GF302: another attribute is reset
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h

    def reset(self):
        self.__dict__.update(c=None)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    net.reset()
    opt.zero_grad()
    net(torch.randn(1, 4)).sum().backward()
    opt.step()
