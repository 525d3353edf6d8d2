# flags 0
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
w7 = torch.randn(3, 4, requires_grad=True)
x11 = w7.mean(-1, keepdim=True)
x11[x11 > 0] = 0.0
loss15 = F.kl_div(F.log_softmax(x11, -1), F.softmax(x11, -1), reduction='batchmean')
loss15.backward()
loss23 = x11.sum()
loss23.backward()
