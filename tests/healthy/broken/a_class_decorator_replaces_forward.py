# GF301: the forward that the decorator puts in place only doubles
import torch
from torch import nn


def mean(cls):
    old = cls.forward
    cls.forward = lambda self, *args: old(self, *args) * 2
    return cls


@mean
class Crit(nn.Module):
    def forward(self, p, t):
        return (p - t).abs()


net = nn.Linear(4, 1)
Crit()(net(torch.randn(2, 4)), torch.randn(2, 1)).backward()
