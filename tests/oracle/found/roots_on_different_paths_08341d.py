# flags 2
# ruff: noqa
# mypy: ignore-errors
import os
import torch
import torch.nn.functional as F
flag1 = os.environ.get('GRADFIX_ORACLE')
w6 = torch.ones(3, 4, requires_grad=True)
def f8(t, deep=False):
    u = F.relu(t)
    if not deep:
        return u
    u.neg_()
    return F.relu(u)
x9 = f8(w6, flag1)
y10 = x9
loss11 = torch.sum(w6)
torch.autograd.backward([loss11, y10.sum()])
