# For a tuple another function is called, which detaches what is in it.
from functools import singledispatch

import torch
from torch import nn


@singledispatch
def detach(x):
    return x


@detach.register
def _(x: torch.Tensor):
    return x.detach()


@detach.register(tuple)
def _(x):
    return tuple(detach(v) for v in x)


rnn = nn.LSTM(4, 4)
opt = torch.optim.SGD(rnn.parameters(), lr=0.1)
h = None
for i in range(3):
    out, h = rnn(torch.randn(3, 2, 4), h)
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
    h = detach(h)
