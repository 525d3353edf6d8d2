# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w3 = torch.rand(3, 4).requires_grad_()
torch.set_grad_enabled(False)
x12 = (w3 * 2)
y13 = x12.requires_grad_()
y13.zero_()
torch.set_grad_enabled(True)
loss15 = torch.mean(x12)
loss15.backward()
