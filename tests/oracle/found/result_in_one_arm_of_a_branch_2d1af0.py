# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
from torch import nn
class Net1(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.ReLU(True)
    def forward(self, x):
        h = x
        h += self.l1(h)
        if h.dim() == 2:
            h = h.detach().requires_grad_()
        else:
            pass
        return h
# behind the file, unseen by the tape:
net = Net1()
net(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()
