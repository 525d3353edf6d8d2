# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w1 = torch.rand(4).requires_grad_()
x5 = torch.cumprod((w1.expand(3, 4)), -1)
y7 = x5.contiguous()
y7.exp_()
x5.sum().backward()
