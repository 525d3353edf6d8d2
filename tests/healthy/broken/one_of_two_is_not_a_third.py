# GF101: "lin" is in ("lin", "none")
import torch
from torch import nn


def block(x, act):
    lin = nn.Linear(4, 4)
    h = lin(x)
    if act == "lin":
        h = torch.sigmoid(h)
    if act in ("lin", "none"):
        h += x
    h.sum().backward()


import json

for args in json.loads('[["exp"], ["lin"]]'):
    block(torch.randn(2, 4), *args)
