# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
w = torch.randn(3, 4, requires_grad=True)
y = F.gumbel_softmax(w * 2, hard=True)
y += 1
y.sum().backward()
