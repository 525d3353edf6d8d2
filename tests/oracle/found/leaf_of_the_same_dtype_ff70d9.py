# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(4, requires_grad=True)
x = w.to(torch.float32)
x -= 1
