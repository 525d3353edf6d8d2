# Nothing is an int and a str.
import torch
from torch import nn


def block(x, a):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if isinstance(a, int):
        h = torch.sigmoid(h)
    if isinstance(a, str):
        h += x
    h.sum().backward()


import json

for args in json.loads('[[1], ["a"]]'):
    block(torch.randn(2, 4), *args)
