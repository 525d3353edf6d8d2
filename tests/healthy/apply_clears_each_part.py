# apply calls the function with each part and the whole.
import torch
from torch import nn

net = nn.Linear(4, 2)
o = torch.optim.SGD(net.parameters(), 0.1)
for i in range(3):
    net(torch.randn(6, 4)).pow(2).mean().backward()
    o.step()
    net.apply(lambda m: m.zero_grad())
