# GF201: what is appended is cut off
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(9):
    losses = {}
    for k in ("a", "b"):
        losses.setdefault(k, []).append(net(torch.randn(2, 4)).pow(2).mean().detach())
    total = torch.stack([torch.stack(v).sum() for v in losses.values()]).sum()
    opt.zero_grad()
    total.backward()
    opt.step()
