# What starts with "x" isn't "y".
import torch
from torch import nn


def block(x, a):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if a == "y":
        h = torch.sigmoid(h)
    if a.startswith("x"):
        h += x
    h.sum().backward()


import json

for args in json.loads('[["y"], ["xa"]]'):
    block(torch.randn(2, 4), *args)
