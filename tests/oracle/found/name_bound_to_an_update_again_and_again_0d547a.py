# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w1 = torch.randn(3, 4, requires_grad=True)
for turn3 in range(2):
    y4 = w1
    loss5 = torch.sum(y4)
    loss5.backward()
    y4 = y4 - 0.1 * y4.grad
