# GF101: any other mode passes both tests
import json

import torch
import torch.nn as nn

lin = nn.Linear(4, 4)
opt = torch.optim.SGD(lin.parameters(), 0.1)


def run(x, mode=None):
    mode = mode or "soft"
    w = lin(x)
    if mode != "soft":
        w = torch.softmax(w, -1)
    if mode != "hard":
        w += 1.0
    opt.zero_grad()
    w.sum().backward()
    opt.step()


for mode in json.loads('[null, "hard", "plain"]'):
    run(torch.randn(2, 4), mode)
