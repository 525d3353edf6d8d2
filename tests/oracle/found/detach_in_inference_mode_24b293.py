# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w2 = torch.randn(4, requires_grad=True)
x5 = w2
with torch.inference_mode():
    x5.detach_()
x5.flatten().mul_(2)
