# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
flag0 = len(sys.argv) > 5
w1 = torch.randn(3, 4, requires_grad=True)
losses = []
for part in range(2):
    if flag0:
        w1.requires_grad = False
    loss = w1
    losses.append(loss)
final = sum(losses)
final.backward()
