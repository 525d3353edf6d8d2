# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
def f1(a, b):
    a.data = a.data * 2
w3 = torch.ones(3, 4, requires_grad=True)
with torch.inference_mode():
    x4 = f1(w3, w3)
w3[...] = 0.0
