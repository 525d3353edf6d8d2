# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
x = torch.randn(3, 4)
x @= torch.eye(4)
loss = x.sum()
loss.backward()
