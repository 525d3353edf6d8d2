# `out` in the comprehension is another name than `out` around it.
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    x = torch.randn(8, 4)
    out = torch.tanh(net(x))
    pairs = [(out.detach(), x)]
    errors = [float((out - y).abs().mean()) for out, y in pairs]
    loss = (out - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
