# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(3, 4, requires_grad=True)
for row in w:
    F.relu_(row)
