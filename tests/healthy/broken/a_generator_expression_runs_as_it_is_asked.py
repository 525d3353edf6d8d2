# GF105: a list is made whole, before the first step
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [torch.randn(8, 4) for _ in range(4)]
losses = [net(x).pow(2).mean() for x in data]
for loss in losses:
    opt.zero_grad()
    loss.backward()
    opt.step()
