# GF101: what 4 divides 2 divides, too
import torch
from torch import nn


def block(x, a):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if a % 4 == 0:
        h = torch.sigmoid(h)
    if a % 2 == 0:
        h += x
    h.sum().backward()


import json

for args in json.loads("[[0], [1]]"):
    block(torch.randn(2, 4), *args)
