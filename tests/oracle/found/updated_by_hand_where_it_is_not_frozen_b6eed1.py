# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
from torch import nn
flag1 = os.environ.get('GRADFIX_ORACLE')
w4 = nn.Parameter(torch.randn(3, 4))
w5 = torch.randn(3, 4, requires_grad=True)
for turn6 in range(2):
    x7 = w5
    if flag1:
        w5.requires_grad = False
    loss13 = (w4 * x7).sum()
    loss13.backward()
    if w5.grad is not None:
        with torch.no_grad():
            w5.copy_(w5 - w5.grad)
