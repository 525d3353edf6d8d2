# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
flag1 = os.environ.get('GRADFIX_ORACLE')
w3 = Variable(torch.randn(3, 4), requires_grad=True)
w4 = nn.Parameter(torch.randn(3, 4))
x5 = (w4 * 2)
for r6 in range(3):
    x5[r6].exp_()
def f7(t, deep=False):
    u = t
    if not deep:
        return u
    return x5
x8 = f7(w3, flag1)
loss9 = torch.mean((F.leaky_relu(x8, 0.1)))
loss9.backward()
