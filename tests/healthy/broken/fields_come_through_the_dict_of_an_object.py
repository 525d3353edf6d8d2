# GF101: what comes through __dict__ is another field
import torch
from torch import nn


class Config:
    sig = True

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


config = Config(width=4)
lin = nn.Linear(4, 4)
h = lin(torch.randn(2, 4))
h = torch.sigmoid(h) if config.sig else h * 1.0
h += 1
h.sum().backward()
