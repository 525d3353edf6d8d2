# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
def f1(a, b):
    x2 = torch.min(a, b)
    b = x2
    x2[:] = b
    return F.glu(torch.cat([x2, x2], -1))
