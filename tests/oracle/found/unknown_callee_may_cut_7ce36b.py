# flags 0, unknown callee
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
from torch.autograd import Variable
from mystery import blur
w6 = Variable(torch.randn(3, 4), requires_grad=True)
w8 = Variable(torch.randn(3, 4), requires_grad=True)
x9 = w6 / ((torch.randn(3, 4)).abs() + 1)
k10 = 0
while k10 < 2:
    k10 += 1
    nn.LeakyReLU(0.1, True)(x9)
x12 = w8
x15 = blur(x9)
loss16 = (x15 - x12).abs().sum()
loss16.backward()
