# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
from torch import nn
flag0 = len(sys.argv) > 5
w2 = nn.Parameter(torch.randn(3, 4))
x11 = w2
x12 = x11 + 1 if flag0 else x11.exp()
i15 = x12 > 0
x16 = x12.masked_fill(i15, 0.0)
i15[0] = True
loss17 = torch.mean(x16)
(loss17 * 2).backward()
