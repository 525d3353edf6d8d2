# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
flag0 = len(sys.argv) > 5
w2 = torch.rand(3, 4).requires_grad_()
c3 = torch.zeros(3, 4)
o11 = torch.zeros(3, 4)
for k12 in range(3):
    o11[k12] = o11[k12 - 1] * w2[k12]
if flag0:
    o11 = c3
x14 = torch.stack([(torch.min(o11, c3)), (torch.where(w2 > 0, w2, -w2))])
x14 *= o11
loss17 = torch.sum(x14)
loss17.backward()
