# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch.autograd import Variable
w5 = torch.randn(3, 4, requires_grad=True)
d7 = Variable(w5)
with torch.inference_mode():
    d7.data = d7.data * 2
w5 = w5.lerp_(w5, 0.5)
