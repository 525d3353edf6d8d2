# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
from torch import nn
flag0 = len(sys.argv) > 5
def f1(a, b):
    b.sigmoid_()
w4 = nn.Parameter(torch.randn(3, 4))
x8 = w4.pow(2) if flag0 else w4.pow(2)
torch.set_grad_enabled(False)
x11 = f1(x8, w4)
torch.set_grad_enabled(True)
loss12 = w4.norm()
torch.autograd.backward([loss12, x8.sum()])
