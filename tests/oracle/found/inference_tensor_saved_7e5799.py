# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
w = torch.ones(3, requires_grad=True)
with torch.inference_mode():
    z = w * 2
x = z * w
