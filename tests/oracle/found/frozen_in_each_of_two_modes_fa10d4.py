# flags 2
# ruff: noqa
# mypy: ignore-errors
import os
import sys

import torch
flag0 = len(sys.argv) > 5
flag1 = bool(os.environ.get('GRADFIX_ORACLE'))
w2 = torch.rand(3, 4).requires_grad_()
with torch.set_grad_enabled(flag1):
    if flag0:
        pass
    else:
        w2.requires_grad_(False)
loss21 = w2
loss21.backward()
