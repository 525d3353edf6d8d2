# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch.autograd import Variable
w6 = torch.ones(4, requires_grad=True)
w7 = torch.randn(3, 4, requires_grad=True)
d9 = Variable(w6)
x13 = w6 - d9
loss19 = x13.sum()
loss19.backward(inputs=[w7])
