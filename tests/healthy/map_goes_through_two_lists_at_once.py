# map gives the function one item of each list.
import torch
from torch import nn


def act(x, kind="sig"):
    return torch.sigmoid(x) if kind == "sig" else x * 1.0


lin = nn.Linear(4, 4)
for h in map(act, [lin(torch.randn(2, 4))], ["lin"]):
    h += 1
    h.sum().backward()
