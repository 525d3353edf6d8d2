# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w1 = torch.zeros(3, 4, requires_grad=True)
v3 = w1.unfold(1, 2, 2)
v3.flatten().mul_(2)
