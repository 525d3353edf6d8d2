# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
flag0 = len(sys.argv) > 5
w2 = torch.randn(4)
torch.set_grad_enabled(False)
if not flag0:
    torch.set_grad_enabled(True)
loss17 = torch.mean(w2)
loss17.requires_grad_(True)
loss17.backward()
