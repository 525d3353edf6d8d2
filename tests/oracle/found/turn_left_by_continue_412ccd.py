# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
from torch import nn
flag0 = len(sys.argv) > 5
w3 = nn.Parameter(torch.randn(3, 4))
x4 = F.relu(w3)
for k5 in range(3):
    if flag0:
        continue
    x4 = F.relu(x4)
x6 = x4
if flag0:
    x4.detach()[0] = 0.0
x7 = (x6)
loss10 = x7.mean()
loss10.backward()
