# What is written to an object's __dict__ are its attributes, which hide those of the class.
import torch
from torch import nn


class Config:
    sig = True

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


config = Config(sig=False)
lin = nn.Linear(4, 4)
h = lin(torch.randn(2, 4))
h = torch.sigmoid(h) if config.sig else h * 1.0
h += 1
h.sum().backward()
