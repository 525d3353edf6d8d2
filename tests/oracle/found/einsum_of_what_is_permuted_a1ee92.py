# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(4, 3, requires_grad=True)
x = (w * 2).t()
y = torch.einsum('ij,ij->', x, x)
x += 1
y.backward()
