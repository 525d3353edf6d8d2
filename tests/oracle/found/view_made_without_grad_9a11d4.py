# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(3, 4, requires_grad=True)
x = w * 2
with torch.no_grad():
    v = x.t()
v.mul_(2)
