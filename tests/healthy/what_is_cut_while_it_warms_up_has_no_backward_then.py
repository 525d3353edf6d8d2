# Backward runs only in the turns in which nothing is cut off.
import json

import torch
from torch import nn

first, second = nn.Linear(4, 4), nn.Linear(4, 1)
opt_first = torch.optim.SGD(first.parameters(), 0.1)
opt_second = torch.optim.SGD(second.parameters(), 0.1)


def fit(epochs, warm, every):
    for epoch in range(epochs):
        for i in range(4):
            kept = first(torch.randn(2, 4))
            if epoch < warm:
                kept = kept.detach()
            opt_first.zero_grad()
            if epoch >= warm and i % every == 0:
                kept.mean().backward()
                opt_first.step()


fit(*json.loads("[3, 1, 2]"))
