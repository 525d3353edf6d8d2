# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(3, requires_grad=True)
x = 1.0 / (w + 9)
x.mul_(2)
x.sum().backward()
