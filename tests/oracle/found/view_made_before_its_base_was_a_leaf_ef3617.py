# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
c4 = torch.rand(3, 4)
v6 = c4.select(0, 1)
c4.requires_grad_()
v6[v6 > 0] = 0.0
