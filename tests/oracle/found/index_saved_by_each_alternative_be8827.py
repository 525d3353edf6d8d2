# flags 1
# ruff: noqa
# mypy: ignore-errors
import math
import os
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
flag0 = len(sys.argv) > 5
@torch.no_grad()
def f1(a, b):
    if flag0:
        a = F.elu((torch.randn(3, 4)))
        x2 = F.dropout(a, p=0.0)
    b.data *= 0.5
    return torch.clamp(a, -1, 1)
w3 = torch.randn(1, requires_grad=True)
w4 = torch.rand(3, 4).requires_grad_()
x5 = (w4 * 2)
x6 = x5 * 2
if flag0:
    x6 = x5 + 1
if not flag0:
    x6.tanh_()
x6 = x6 + w4
i7 = torch.tensor([0, 1, 2])
x8 = x6[i7]
i7[0] = 1
x9 = x6.sum(dim=0).erf()
loss10 = F.mse_loss(x8, w4)
loss10.backward(retain_graph=True)
x11 = torch.einsum('ij,kj->ik', ((x9.expand(3, 4)) @ x6.t() @ x6), (((x9 + torch.zeros(3, 4))).type_as(((x9 + torch.zeros(3, 4)))))) @ ((x9.expand(3, 4)) @ x6.t() @ x6)
loss10.backward()
x12 = (w4 * 2)
for r13 in range(3):
    x12[r13].tanh_()
x14 = w4.norm(dim=0).to(torch.float32)
x12 = torch.bmm(x12[None], x12.t()[None])[0] @ x12
c15 = torch.rand(3, 4)
loss16 = w4.mean()
loss16.backward()
g17 = w3.grad
y18 = w4
p19, p20 = (c15 * 2)[:, :2], (c15 * 2)[:, 2:]
p19 = p19 * 1
p19.clamp_(-1, 1)
c21 = torch.ones(3, 4)
x22 = F.dropout((w4.max(0)[0]), 0.5)
n23 = p19.sum().sum().item()
x24 = (c15 * c15) * n23
loss25 = (torch.mean((x24 / x24.norm()))) + y18.sum()
loss25.backward()
