# The hook runs before each forward.
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net.register_forward_pre_hook(lambda m, a: opt.zero_grad())
for i in range(3):
    net(torch.randn(2, 4)).pow(2).mean().backward()
    opt.step()
