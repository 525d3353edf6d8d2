# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
u = (w * 2).chunk(2)[0]
u.flatten().mul_(2)
u.sum().backward()
