# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
flag0 = len(sys.argv) > 5
w2 = torch.zeros(3, 4, requires_grad=True)
x7 = w2 + w2
x11 = x7
if flag0:
    x7.sigmoid_()
F.leaky_relu(x7, 0.1, inplace=True)
loss13 = torch.sum(x11)
loss13.backward()
