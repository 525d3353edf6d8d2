# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
w1 = torch.randn(3, 4, requires_grad=True)
w2 = nn.Parameter(torch.randn(3, 4))
total = 0
for part in range(2):
    w1.data = w1.data * 2
    loss = (w2 * w1).mean()
    total = total + loss
final = total
final.backward()
