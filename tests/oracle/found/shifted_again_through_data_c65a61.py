# flags 2
# ruff: noqa
# mypy: ignore-errors
import math
import os
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
flag0 = len(sys.argv) > 5
flag1 = bool(os.environ.get('GRADFIX_ORACLE'))
def touch1(a):
    a.data += 1
    a = (1 - a).tanh()
    x2 = a * (a) if flag1 else a.exp()
    x2[0].add_(1)
w3 = Variable(torch.randn(3, 4), requires_grad=True)
w4 = torch.ones(3, 4, requires_grad=True)
w5 = torch.zeros(3, 4, requires_grad=True)
touch1(w5)
x6 = w4.pow(2)
for k7 in range(3):
    if k7 > 0:
        break
    x6 = x6 * (w5)
if True:
    for r8 in x6:
        touch1(w5)
        x6.masked_fill_(x6 > 0, 0.0)
    p9, p10 = torch.split(w4, [1, 3], dim=1)
loss11 = (w5 - w4).abs().sum()
x6.backward(torch.ones_like(x6))
g12 = w4.grad
for k13 in range(2):
    x14 = w4 + 1
    for k15 in range(3):
        if k15 > 0:
            continue
        x14 = F.relu(x14)
loss16 = w3.abs().max()
w5.backward(gradient=torch.ones_like(w5), retain_graph=True)
