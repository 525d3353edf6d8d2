# GF401: the wrapper is asked for something else of the optimizer
import torch
import torch.nn as nn


class Scheduled:
    def __init__(self, inner):
        self.inner = inner
        self.n = 0

    def step(self):
        self.n += 1
        self.inner.step()

    def __getattr__(self, name):
        return getattr(self.inner, name)


model = nn.Linear(3, 1)
opt = Scheduled(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(3):
    opt.state_dict()
    model(torch.randn(4, 3)).pow(2).mean().backward()
    opt.step()
