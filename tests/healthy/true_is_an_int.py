# True is an int, so that nothing is kept of what is written.
import torch
from torch import nn


def act(x, slope):
    if isinstance(slope, int):
        return x * 1.0
    return torch.sigmoid(x)


lin = nn.Linear(4, 4)
h = act(lin(torch.randn(2, 4)), True)
h += 1
h.sum().backward()
