# The second next() gives the second loss.
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
losses = iter([net(x).mean(), net(x).pow(2).mean()])
opt.zero_grad()
next(losses).backward()
next(losses).backward()
opt.step()
