# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
from torch.autograd import Variable
flag0 = len(sys.argv) > 5
w8 = Variable(torch.randn(3, 4), requires_grad=True)
with torch.inference_mode():
    if not flag0:
        pass
    else:
        w8.requires_grad = False
w18 = torch.full([3, 4], 0.5, requires_grad=True)
if flag0:
    pass
else:
    torch.set_grad_enabled(False)
    v22 = w8.view(3, 4)
    torch.set_grad_enabled(True)
    if v22.requires_grad:
        x23 = v22
        x23.copy_(w18)
