# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
x = w * 2
s = x.pow(2)
u = x[:, 0].ravel()
u[0] = 0.0
loss = x.sum() + s.sum()
loss.backward()
