# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
flag0 = len(sys.argv) > 5
w3 = torch.rand(3, 4).requires_grad_()
c4 = torch.randn(3, 4)
x11 = (torch.stack([c4, w3]).mean(dim=0)).tanh()
if not flag0:
    pass
else:
    x11[0].add_(1)
x11.backward(torch.ones_like(x11))
