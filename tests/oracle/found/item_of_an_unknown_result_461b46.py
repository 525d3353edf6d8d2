# flags 0, unknown callee
# ruff: noqa
# mypy: ignore-errors
import torch
from mystery import blur
w4 = torch.ones(3, 4, requires_grad=True)
x6 = blur(w4)
loss7 = (w4 ** 2).sum() + x6.pow(2).mean().item()
loss7.backward()
