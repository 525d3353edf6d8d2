# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
from torch import nn
class Net3(nn.Module):
    def __init__(self):
        super().__init__()
        self.l2 = nn.LayerNorm(4)
    def forward(self, x):
        h = x
        if 1 + 1 == 2:
            h = h.data
        else:
            pass
        h += self.l2(h)
        return h
net = Net3()
c7 = torch.ones(3, 4)
out = net(c7)
loss = F.mse_loss(out, out)
loss.backward(retain_graph=True)
