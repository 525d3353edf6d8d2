# The hook runs in each call of a layer and puts its result into the list.
import torch
from torch import nn

acts = []


def hook(module, args, out):
    acts.append(out)


net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for m in net:
    m.register_forward_hook(hook)
for i in range(3):
    acts.clear()
    net(torch.randn(2, 4))
    opt.zero_grad()
    torch.stack(acts).pow(2).mean().backward()
    opt.step()
