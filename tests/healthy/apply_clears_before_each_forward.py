# apply calls the function with each part.
import torch
import torch.nn as nn

model = nn.Linear(3, 1)
opt = torch.optim.Adam(model.parameters(), lr=0.1)


def clear(m):
    for p in m.parameters(recurse=False):
        p.grad = None


def train(loader):
    for x, y in loader:
        model.apply(clear)
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        opt.step()


train([(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(2)])
