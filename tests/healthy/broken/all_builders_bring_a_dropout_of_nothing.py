# GF104: who builds the class brings p = 0.3
import torch
import torch.nn as nn


class Unit(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Dropout(drop, inplace=True),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, x):
        return x + self.body(x)


class Net(nn.Module):
    def __init__(self, drop, width=4):
        super().__init__()
        self.first = nn.Conv2d(3, width, 1)
        self.unit = Unit(width, drop)

    def forward(self, x):
        return self.unit(self.first(x))


def small():
    return Net(0.3)


def train(loader):
    net = small()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()


train([torch.randn(1, 3, 4, 4)])
