# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
c11 = torch.rand(3, 4)
c11.requires_grad_()
torch.set_grad_enabled(False)
p13, p14 = c11[:2]
torch.set_grad_enabled(True)
loss16 = p14.norm()
nn.ReLU(inplace=True)(loss16)
loss16.backward()
