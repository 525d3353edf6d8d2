# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(3, 4, requires_grad=True)
p, q = torch.split(w * 2, [1, 3], dim=1)
p.neg_()
