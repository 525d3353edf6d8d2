# Each number below what came in has its item detached.
import torch
from torch import nn


def train(layers, steps):
    cells = [nn.GRUCell(4, 4), nn.GRUCell(4, 4)]
    opt = torch.optim.SGD([p for c in cells for p in c.parameters()], lr=0.1)
    state = [torch.zeros(1, 4), torch.zeros(1, 4)]
    for i in range(steps):
        state[0] = cells[0](torch.randn(1, 4), state[0])
        state[1] = cells[1](state[0], state[1])
        opt.zero_grad()
        state[1].sum().backward()
        opt.step()
        for k in range(layers):
            state[k] = state[k].detach()


import json

train(*json.loads("[2, 3]"))
