# GF302: another entry is taken out
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses = {}
for i in range(8):
    out = net(torch.randn(8, 4))
    losses["main"] = out.pow(2).mean()
    if i % 4 == 0:
        losses["reg"] = out.abs().mean()
    opt.zero_grad()
    sum(losses.values()).backward()
    opt.step()
    losses.pop("main", None)
