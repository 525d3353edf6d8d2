# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
from torch import nn
flag1 = os.environ.get('GRADFIX_ORACLE')
w8 = nn.Parameter(torch.randn(3, 4))
w9 = torch.rand(3, 4).requires_grad_()
c10 = torch.zeros(3, 4)
if flag1:
    c10.addcmul_(w8, w8)
x25 = c10
x26 = torch.stack([x25.norm(dim=0), w9.sum(dim=0)])
x27 = x25
n28 = x27
x27.div_(n28)
loss29 = (x26 - x26).abs().sum()
loss29.backward()
x26.backward(torch.ones_like(x26))
