# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
flag0 = len(sys.argv) > 5
w3 = torch.randn(3, 4, requires_grad=True)
total = 0
for part in range(2):
    w3.data += 1
    if flag0:
        w3.data.clamp_(-0.1, 0.1)
    else:
        pass
    loss = (w3 * w3).mean()
    total += loss
final = total
final.backward()
