# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
w7 = torch.rand(3, 4).requires_grad_()
x9 = F.dropout(w7, 0.5)
with torch.no_grad():
    v11 = x9.reshape(12)
v11 /= 2
