# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
l0, l1 = nn.Linear(4, 4), nn.Linear(4, 4)
c11 = torch.zeros(3, 4)
h = l0(c11)
h += l1(h)
c11.requires_grad_()
loss14 = F.mse_loss(h, c11)
loss14.backward(inputs=[c11])
