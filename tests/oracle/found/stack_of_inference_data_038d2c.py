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
def f1(a, b):
    x2 = F.leaky_relu(a, 0.1)
    x2 = (b / 2).mul(a)
    nn.init.normal_(x2, std=0.1)
    return torch.addcmul(a, a, x2)
w3 = torch.ones(3, 4, requires_grad=True)
w4 = nn.Parameter(torch.randn(3, 4))
p5, p6 = w4[:, :2], w4[:, 2:]
x7 = torch.where((w4.max(0)[0]) > (w4.mean(0) - 0.5), (w4.max(0)[0]), (w4.mean(0) - 0.5))
with torch.inference_mode():
    x7.data = x7.data * 2
    x8 = torch.stack([w4, w4]).sum(0)
for k9 in range(2):
    v10 = w3.unsqueeze(0)
    x11 = f1(w3, w3)
    i12 = x11 > 0
    x13 = x11.masked_fill(i12, 0.0)
with torch.no_grad():
    w3.detach().mul_(2)
loss14 = x7.pow(2).mean()
loss14.backward()
