# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
w7 = nn.Parameter(torch.randn(3, 4))
total = 0
for part in range(2):
    w7.data *= 0.5
    loss = (w7 * w7).mean()
    total += loss
final = total
final.backward()
