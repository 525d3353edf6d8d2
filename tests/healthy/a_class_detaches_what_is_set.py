# The class detaches each tensor that it is given.
import torch
from torch import nn


class Holder:
    def __setattr__(self, name, value):
        if torch.is_tensor(value):
            value = value.detach()
        object.__setattr__(self, name, value)


cell = nn.GRUCell(4, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
state = Holder()
state.h = torch.zeros(1, 4)
for _ in range(3):
    h = cell(torch.randn(1, 4), state.h)
    opt.zero_grad()
    h.sum().backward()
    opt.step()
    state.h = h
