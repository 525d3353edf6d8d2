# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w5 = torch.rand(3, 4).requires_grad_()
total = 0
for part in range(2):
    w5.data.zero_()
    loss = (w5 * w5).mean()
    total = total + loss
final = total
final.backward()
