# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
@torch.inference_mode()
def f1(a, b):
    return F.dropout(b, 0.5)
w5 = torch.zeros(3, 4, requires_grad=True)
x11 = f1(torch.randn(3, 4), w5)
x16 = x11
loss18 = x16
loss18.backward(retain_graph=True)
