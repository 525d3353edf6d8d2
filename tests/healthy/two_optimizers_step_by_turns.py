# What is cleared is of the one whose turn it wasn't.
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = nn.ModuleList(nn.Linear(5, 5) for _ in range(2))
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        i = 0
        while True:
            x = self.stack[i](x)
            i += 1
            if i == len(self.stack):
                break
            x = F.relu(x)
        x = x * 0.5
        return self.head(x)


first, second = nn.Linear(6, 5), Model()
opt_first = torch.optim.SGD(first.parameters(), lr=0.1)
opt_second = torch.optim.SGD(second.parameters(), lr=0.1)
turn = 0
for epoch in range(2):
    for x in torch.randn(2, 4, 6):
        loss = second(first(x)).pow(2).mean()
        opt = opt_first if turn % 2 == 0 else opt_second
        first.zero_grad()
        second.zero_grad()
        loss.backward()
        opt.step()
        turn += 1
