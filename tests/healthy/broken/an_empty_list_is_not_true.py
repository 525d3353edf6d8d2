# GF101: a list without items is false and has no length
import torch
from torch import nn


def block(x, xs):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if not xs:
        h = torch.sigmoid(h)
    if len(xs) == 0:
        h += x
    h.sum().backward()


import json

for args in json.loads("[[[]], [[1]]]"):
    block(torch.randn(2, 4), *args)
