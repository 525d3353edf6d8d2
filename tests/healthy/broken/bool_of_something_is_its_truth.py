# GF101: bool(act) and act hold together
import torch
from torch import nn


def block(x, act):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if act:
        h = torch.sigmoid(h)
    if bool(act):
        h += x
    h.sum().backward()


import json

for args in json.loads("[[0], [1]]"):
    block(torch.randn(2, 4), *args)
