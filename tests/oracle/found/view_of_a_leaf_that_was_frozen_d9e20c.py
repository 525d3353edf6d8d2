# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
flag0 = len(sys.argv) > 5
w2 = torch.zeros(3, 4, requires_grad=True)
v3 = w2.view(-1)
if not flag0:
    w2.requires_grad_(False)
    v3.mul_(v3)
else:
    pass
