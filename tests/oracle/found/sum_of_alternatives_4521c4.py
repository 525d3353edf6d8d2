# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
import torch.nn.functional as F
flag0 = len(sys.argv) > 5
w2 = torch.rand(3, 4).requires_grad_()
c3 = torch.randn(3, 4)
x4 = F.relu(w2) if flag0 else F.relu(w2)
x4.copy_(w2)
loss = (c3 * x4).mean()
x4 = F.relu(w2) if flag0 else F.relu(w2)
x4.copy_(w2)
loss2 = (c3 * x4).mean()
final = sum([loss, loss2])
final.backward()
