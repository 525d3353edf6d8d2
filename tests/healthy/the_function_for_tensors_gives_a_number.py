# For a tensor the registered function is called.
import functools

import torch
import torch.nn as nn

model = nn.Linear(3, 1)
crit = nn.MSELoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)


@functools.singledispatch
def num(v):
    return v


@num.register
def _(v: torch.Tensor):
    return v.item()


total = 0.0
for _ in range(3):
    l = crit(model(torch.randn(4, 3)), torch.zeros(4, 1))
    opt.zero_grad()
    l.backward()
    opt.step()
    total += num(l)
print(type(total))
