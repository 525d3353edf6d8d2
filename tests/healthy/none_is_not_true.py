# What is true isn't None.
import torch
from torch import nn


def block(x, act):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if act:
        h = torch.sigmoid(h)
    if act is None:
        h += x
    h.sum().backward()


import json

for args in json.loads('[[null], ["exp"]]'):
    block(torch.randn(2, 4), *args)
