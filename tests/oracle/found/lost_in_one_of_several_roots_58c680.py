# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w4 = nn.Parameter(torch.randn(4))
w5 = torch.full([3, 4], 0.5, requires_grad=True)
x11 = w5
x9 = x11
torch.set_grad_enabled(False)
v15 = w4[:2]
torch.set_grad_enabled(True)
loss16 = F.mse_loss(x9, w5, reduction='sum')
torch.autograd.backward([loss16, v15.sum()])
