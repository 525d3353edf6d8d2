# flags 0
# ruff: noqa
# mypy: ignore-errors
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
def f1(a, b):
    if b.requires_grad:
        a.data = a.data * 2
    with torch.set_grad_enabled(True):
        b = b / b.std()
    return b.add(b, alpha=2)
w2 = torch.ones(4, requires_grad=True)
w3 = torch.ones(3, 4, requires_grad=True)
with torch.inference_mode():
    x4 = f1(w3, w3)
    x4 = torch.add(w3, x4)
w3.copy_(w3)
w3[...] = 0.0
x5 = (torch.stack([w3, w3]).sum(0)).sub(w3.neg())
loss6 = F.smooth_l1_loss(w2, w2)
loss6.backward(retain_graph=True)
x5 = F.linear((torch.maximum(x5, x5)), (F.layer_norm(x5, x5.shape[-1:]))) @ (F.layer_norm(x5, x5.shape[-1:]))
loss6.backward()
g7 = w3.grad
