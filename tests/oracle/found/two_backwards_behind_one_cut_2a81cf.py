# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch.autograd import Variable
w3 = Variable(torch.randn(3, 4), requires_grad=True)
torch.set_grad_enabled(False)
v14 = w3.reshape(-1, 2)
loss15 = v14 - v14
v14.backward(torch.ones_like(v14), retain_graph=True)
loss15.backward()
