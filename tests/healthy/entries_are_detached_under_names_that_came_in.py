# Each name that came in has its entry detached.
import torch
from torch import nn


def train(names, steps):
    cell = nn.LSTMCell(4, 4)
    opt = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = {"h": torch.zeros(1, 4), "c": torch.zeros(1, 4)}
    for i in range(steps):
        state["h"], state["c"] = cell(torch.randn(1, 4), (state["h"], state["c"]))
        opt.zero_grad()
        state["h"].sum().backward()
        opt.step()
        for name in names:
            state[name] = state[name].detach()


import json

train(*json.loads('[["h", "c"], 3]'))
