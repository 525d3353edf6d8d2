# Behind the call of need() nothing has both.
import torch
from torch import nn


def need(condition, message):
    if not condition:
        raise ValueError(message)


def run(x, act, residual):
    need(not (act == "exp" and residual), "no residual over exp")
    lin = nn.Linear(4, 4)
    h = lin(x)
    if act == "exp":
        h = torch.exp(h)
    if residual:
        h += x
    h.sum().backward()


import json

for args in json.loads('[["exp", false], ["", true]]'):
    run(torch.randn(2, 4), *args)
