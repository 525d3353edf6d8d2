# GF101: who builds the class leaves the default
import torch
from torch import nn


class Mixed(nn.Module):
    def __init__(self, width, act=nn.ReLU, **kwargs):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.act = act(**kwargs)

    def forward(self, x):
        h = self.act(self.fc(x))
        h += x
        return h


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixed = Mixed(5)

    def forward(self, x):
        return self.mixed(x)


Model()(torch.randn(4, 5)).sum().backward()
