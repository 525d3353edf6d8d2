# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
@torch.inference_mode()
def f1(a, b):
    b.data = b.data * 2
    b[-1] *= 2
w12 = torch.full([3, 4], 0.5, requires_grad=True)
c13 = torch.ones(3, 4)
x14 = f1(c13, w12)
x17 = c13
loss18 = x17.atan2(w12)
