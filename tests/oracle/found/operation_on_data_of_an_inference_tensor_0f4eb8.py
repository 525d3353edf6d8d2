# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w6 = torch.randn(3, 4, requires_grad=True)
v14 = w6
with torch.inference_mode():
    v14.data = v14.data * 2
loss20 = v14.norm()
loss20.backward(retain_graph=True)
