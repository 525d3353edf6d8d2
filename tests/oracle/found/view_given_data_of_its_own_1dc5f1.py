# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w2 = torch.rand(4).requires_grad_()
with torch.inference_mode():
    v6 = w2[0]
    v6.data = v6.data * 2
x8 = w2
loss9 = x8.sum()
loss9.backward()
