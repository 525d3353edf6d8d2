# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
from torch import nn
flag0 = len(sys.argv) > 5
def touch1(a):
    x6 = (a * 2)
    with torch.inference_mode():
        v7 = x6.unsqueeze(1)
    v7.clamp_(min=0)
w8 = torch.randn(3, 4)
w10 = nn.Parameter(torch.randn(3, 4))
d22 = w8
if flag0:
    d22.mul_(w10)
touch1(d22)
