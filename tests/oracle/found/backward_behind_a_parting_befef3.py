# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
from torch import nn
flag0 = len(sys.argv) > 5
w5 = torch.full([3, 4], 0.5, requires_grad=True)
items6 = [F.relu(w5), w5 * 1]
items6.append(items6[-1].pow(2))
items6[1].exp_()
x7 = items6.pop()
x10 = x7
x12 = x10
if flag0:
    pass
else:
    x12.detach_()
x18 = w5 @ (x10).t() @ (x10) if False else w5 @ (x12).t() @ (x12)
loss19 = nn.MSELoss()(x18, w5)
loss19.backward()
