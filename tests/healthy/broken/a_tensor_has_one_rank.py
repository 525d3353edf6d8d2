# GF101: what has two dimensions has less than three
import json

import torch
from torch import nn

first, second = nn.Linear(4, 4), nn.Linear(4, 1)
opt_first = torch.optim.SGD(first.parameters(), 0.1)
opt_second = torch.optim.SGD(second.parameters(), 0.1)


def block(x):
    h = first(x)
    if x.dim() == 2:
        h = torch.softmax(h, -1)
    if x.dim() < 3:
        h += 1.0
    h.sum().backward()


for shape in json.loads("[[2, 4], [2, 2, 4]]"):
    block(torch.randn(shape))
