# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
@torch.inference_mode()
def f1(a, b):
    a.data = a.data * 2
w5 = torch.ones(3, 4, requires_grad=True)
c6 = torch.rand(3, 4)
x7 = f1(c6, c6)
loss8 = F.mse_loss(w5, c6)
