# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
x = torch.randn(3, 4)
u = x.cpu()[0].cpu()
u.mul_(w[0, 0])
loss = x.sum()
loss.backward()
