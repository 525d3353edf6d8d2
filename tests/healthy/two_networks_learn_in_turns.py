# A turn is even or odd, and has one backward.
import json

import torch
from torch import nn

first, second = nn.Linear(4, 4), nn.Linear(4, 1)
opt_first = torch.optim.SGD(first.parameters(), 0.1)
opt_second = torch.optim.SGD(second.parameters(), 0.1)


def fit(epochs):
    for epoch in range(epochs):
        loss = second(first(torch.randn(2, 4))).mean()
        opt_first.zero_grad()
        opt_second.zero_grad()
        if epoch % 2 == 0:
            loss.backward()
            opt_second.step()
        if epoch % 2 == 1:
            loss.backward()
            opt_first.step()


fit(json.loads("4"))
