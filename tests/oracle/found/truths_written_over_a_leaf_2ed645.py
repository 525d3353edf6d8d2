# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
s = w + 1
w.logical_not_()
s.sum().backward()
