# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w2 = torch.zeros(3, 4, requires_grad=True)
torch.set_grad_enabled(False)
x4 = (w2 * 2)
y5 = x4.requires_grad_()
y5.neg_()
torch.set_grad_enabled(True)
loss7 = torch.sum((x4 - x4.mean()))
loss7.backward(inputs=[w2])
