# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
flag1 = os.environ.get('GRADFIX_ORACLE')
w11 = torch.ones(3, 4, requires_grad=True)
x15 = w11
if flag1:
    x15 = x15.detach()
x15.detach_()
loss20 = w11.abs().max()
loss20.backward()
