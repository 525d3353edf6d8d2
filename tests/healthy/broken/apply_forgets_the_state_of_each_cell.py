# GF302: apply sets another attribute
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h


def forget(m):
    if isinstance(m, Cell):
        m.c = None


net = nn.Sequential(Cell(), nn.Linear(4, 4), Cell())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    opt.zero_grad()
    net(torch.randn(1, 4)).sum().backward()
    opt.step()
    net.apply(forget)
