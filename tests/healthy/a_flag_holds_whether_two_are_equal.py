# The flag holds exactly where the test above it doesn't.
import torch
from torch import nn


def block(x, cin, cout):
    lin = nn.Linear(4, 4)
    flag = cin == cout
    h = lin(x)
    if cin != cout:
        h = torch.sigmoid(h)
    if flag:
        h += x
    h.sum().backward()


import json

for args in json.loads("[[4, 4], [4, 2]]"):
    block(torch.randn(2, 4), *args)
