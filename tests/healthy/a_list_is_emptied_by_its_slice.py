# memory[:] = [] leaves nothing of the turns before.
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
memory = []
for i in range(8):
    memory.append(net(torch.randn(8, 4)).pow(2).mean())
    if i % 2 == 1:
        opt.zero_grad()
        torch.stack(memory).sum().backward()
        opt.step()
        memory[:] = []
