# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w6 = torch.rand(3, 4).requires_grad_()
x8 = (w6[0]).type_as((w6[0]))
x8.reshape(-1)[0] = 0.0
