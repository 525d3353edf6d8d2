# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
y = w.t().exp()
z = y.contiguous()
z += 1
y.sum().backward()
