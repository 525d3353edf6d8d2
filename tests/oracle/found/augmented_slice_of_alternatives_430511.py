# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
import torch.nn.functional as F
flag0 = len(sys.argv) > 5
w9 = torch.full([3, 4], 0.5, requires_grad=True)
x10 = F.relu(w9.float())
if flag0:
    x10 = w9
x10[1:] -= x10
