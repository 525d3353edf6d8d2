# flags 2
# ruff: noqa
# mypy: ignore-errors
import os

import torch
from torch.autograd import Variable
flag1 = os.environ.get('GRADFIX_ORACLE')
def touch1(a):
    a.detach_()
w14 = Variable(torch.randn(3, 4), requires_grad=True)
i15 = w14 > 0
x16 = w14.masked_fill(i15, 0.0)
i15[0] = True
if flag1:
    touch1(w14)
else:
    pass
y18 = x16
loss19 = y18.abs().max()
loss19.backward(inputs=[w14])
