# GF401: the hook only looks
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net.register_forward_pre_hook(lambda m, a: print(m))
for i in range(3):
    net(torch.randn(2, 4)).pow(2).mean().backward()
    opt.step()
