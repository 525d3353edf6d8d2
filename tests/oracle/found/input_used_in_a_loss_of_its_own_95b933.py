# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(3, requires_grad=True)
d = w.detach().requires_grad_()
d.mean().backward()
