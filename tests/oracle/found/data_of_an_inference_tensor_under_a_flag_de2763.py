# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
flag1 = os.environ.get('GRADFIX_ORACLE')
@torch.inference_mode()
def f1(a, b):
    if flag1:
        a.data = a.data * 2
    else:
        pass
w4 = torch.zeros(3, 4, requires_grad=True)
w5 = torch.randn(3, 4, requires_grad=True)
x7 = f1(w4, w4)
v11 = w5
x12 = w4
loss14 = torch.sum(v11)
torch.autograd.backward([loss14, x12.sum()])
