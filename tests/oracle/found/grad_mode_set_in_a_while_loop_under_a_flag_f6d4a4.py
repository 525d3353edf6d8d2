# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
from torch.autograd import Variable
flag0 = len(sys.argv) > 5
w2 = Variable(torch.randn(1), requires_grad=True)
k6 = 0
while k6 < 1:
    k6 += 1
    if not flag0:
        torch.set_grad_enabled(False)
    else:
        pass
loss9 = torch.sum(w2)
loss9.backward()
