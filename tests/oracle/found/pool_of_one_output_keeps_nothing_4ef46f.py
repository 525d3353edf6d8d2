# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
w = torch.randn(1, 2, 3, 4, requires_grad=True)
x = w * 2
y = nn.AdaptiveAvgPool2d(1)(x)
x += 1
y.sum().backward()
