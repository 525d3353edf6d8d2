# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w4 = torch.ones(3, 4, requires_grad=True)
c6 = torch.randn(3, 4)
x7 = w4 * c6
torch.set_grad_enabled(False)
p9, p10 = w4.split(2, 1)
torch.set_grad_enabled(True)
w4.requires_grad = False
loss11 = p10.sum()
loss11.backward(retain_graph=True)
x22 = x7
loss23 = x22
loss23.backward()
