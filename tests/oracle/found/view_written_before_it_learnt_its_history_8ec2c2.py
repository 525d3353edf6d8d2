# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w4 = torch.randn(4, requires_grad=True)
c6 = torch.zeros(3, 4)
v7 = c6.reshape(-1, 2)
y8 = v7
c6 += torch.stack([w4, w4, w4])
y8 *= 2
