# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
c4 = torch.randn(3, 4)
v5 = c4.reshape(-1, 2)
c4.requires_grad_()
v5.floor_()
