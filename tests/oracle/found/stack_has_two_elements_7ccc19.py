# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(1, requires_grad=True)
x = torch.stack([w, w])
x.backward()
