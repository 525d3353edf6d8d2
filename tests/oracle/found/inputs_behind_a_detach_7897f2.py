# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
l0 = nn.Linear(4, 4)
w13 = torch.randn(3, 4, requires_grad=True)
h = w13.detach()
h += l0(h)
h.sum().backward(inputs=[w13])
