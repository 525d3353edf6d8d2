# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
flag0 = len(sys.argv) > 5
w = torch.randn(3, 4, requires_grad=True)
def f(x):
    if flag0:
        torch.set_grad_enabled(False)
    return x * 2
y = f(w)
z = w * 3
z.sum().backward()
