# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w5 = torch.full([3, 4], 0.5, requires_grad=True)
for turn7 in range(3):
    y8 = w5
    loss9 = torch.mean(y8)
    loss9.backward()
    y8 = y8.grad
