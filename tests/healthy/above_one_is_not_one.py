# What is above 1 isn't 1.
import torch
from torch import nn


def block(x, stride):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if stride == 1:
        h = torch.sigmoid(h)
    if stride > 1:
        h += x
    h.sum().backward()


import json

for args in json.loads("[[1], [2]]"):
    block(torch.randn(2, 4), *args)
