# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
flag0 = len(sys.argv) > 5
w3 = torch.zeros(3, 4, requires_grad=True)
c4 = torch.randn(3, 4)
if not flag0:
    c4 = c4.add_(w3)
else:
    pass
with torch.inference_mode():
    z11 = c4 * 2
x12 = F.linear(z11, c4)
