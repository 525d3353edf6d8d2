# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
def f1(a, b):
    b[...] = 0.0
    x3 = b
    return x3
w4 = torch.randn(4, requires_grad=True)
w5 = torch.randn(3, 4)
w6 = torch.ones(3, 4, requires_grad=True)
x7 = w5
x9 = (torch.matmul(x7, w6.T).matmul(x7)) * (w4.expand(3, 4))
x15 = x9
y16 = x15.reshape(4, 3)
y16.tanh_()
x18 = f1(x9, x9)
loss19 = nn.MSELoss()(x18, x18)
loss19.backward()
