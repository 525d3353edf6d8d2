# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
class Net5(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(4, 4)
    def forward(self, x):
        h = x
        h += self.l1(h)
        return h
net = Net5()
c11 = torch.zeros(3, 4)
x12 = net(c11)
loss14 = F.mse_loss(x12, c11)
loss14.backward(inputs=[c11])
