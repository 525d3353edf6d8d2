# GF101: update brings another entry, so that the default holds
import torch
from torch import nn


def act(x, **overrides):
    config = {"sig": True}
    config.update(**overrides)
    return torch.sigmoid(x) if config["sig"] else x * 1.0


lin = nn.Linear(4, 4)
h = act(lin(torch.randn(2, 4)), width=4)
h += 1
h.sum().backward()
