# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
flag0 = len(sys.argv) > 5
w4 = torch.zeros(3, 4, requires_grad=True)
c5 = torch.full([3, 4], 0.5)
if flag0:
    x7 = (w4)
    c5.copy_(x7)
else:
    pass
x11 = (c5)
with torch.no_grad():
    v12 = x11[0:2, 1]
v12.add_(1)
