# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
y = torch.normal(w * 2, 1.0)
y.sum().backward()
