# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys

import torch
from torch.autograd import Variable
flag0 = len(sys.argv) > 5
w1 = Variable(torch.randn(3, 4), requires_grad=True)
w2 = torch.randn(3, 4)
if flag0:
    with torch.inference_mode():
        w2.data = w2.data * 2
loss = w2 * w1
