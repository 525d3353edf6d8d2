# GF101: the flag holds where act isn't "exp", and there sigmoid's result is kept
import torch
from torch import nn


def block(x, act, residual):
    lin = nn.Linear(4, 4)
    flag = residual and not (act == "exp")
    h = lin(x)
    if act != "exp":
        h = torch.sigmoid(h)
    if flag:
        h += x
    h.sum().backward()


import json

for args in json.loads('[["exp", true], ["lin", true]]'):
    block(torch.randn(2, 4), *args)
