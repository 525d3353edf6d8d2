# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
flag0 = len(sys.argv) > 5
w10 = torch.full([3, 4], 0.5, requires_grad=True)
if not flag0:
    torch.set_grad_enabled(False)
loss22 = torch.mean(w10)
loss22.backward(retain_graph=True)
