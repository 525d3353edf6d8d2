# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
from torch import nn
flag0 = len(sys.argv) > 5
w = torch.ones(3, requires_grad=True)
y = w.exp()
if not flag0:
    y += 1
y.sum().backward()
