# flags 1
# ruff: noqa
# mypy: ignore-errors
import sys
import torch
from torch import nn
flag0 = len(sys.argv) > 5
class Net3(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
    def forward(self, x):
        h = self.l0(x)
        return h
net = Net3()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for turn9 in range(2):
    c10 = torch.randn(3, 4)
    out = net(c10)
    if flag0:
        pass
    else:
        out = out.detach().requires_grad_()
    loss = out.pow(2).mean()
    loss.backward()
    opt.step()
