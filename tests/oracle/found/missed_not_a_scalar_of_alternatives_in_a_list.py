# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch.nn.functional as F
import torch
flag0 = len(sys.argv) > 5
w1 = torch.ones(3, 4, requires_grad=True)
x8 = w1 * 2 if flag0 else F.relu(w1)
items9 = [t @ x8.t() @ x8 for t in (w1, w1)]
x10 = torch.stack(items9)
x10.backward(retain_graph=True)
