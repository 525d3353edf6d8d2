# The wrapper's zero_grad is that of the optimizer in it.
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
    opt.zero_grad()
    model(torch.randn(4, 3)).pow(2).mean().backward()
    opt.step()
