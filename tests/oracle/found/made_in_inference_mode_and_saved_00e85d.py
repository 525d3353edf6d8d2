# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch.autograd import Variable
def f1(a, b):
    with torch.inference_mode():
        b = torch.tensor(b.tolist())
    x2 = torch.min(a, b)
w5 = Variable(torch.randn(3, 4), requires_grad=True)
x8 = f1(w5, w5)
