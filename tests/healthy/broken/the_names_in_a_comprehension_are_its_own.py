# GF201: `out` of a loop is `out` around it
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    x = torch.randn(8, 4)
    out = torch.tanh(net(x))
    pairs = [(out.detach(), x)]
    for out, y in pairs:
        print(float((out - y).abs().mean()))
    loss = (out - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
