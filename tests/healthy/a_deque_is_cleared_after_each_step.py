# Nothing that was made before a step is left in the deque.
from collections import deque

import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
win = deque(maxlen=2)
for i in range(8):
    win.append(net(torch.randn(1, 4)))
    if len(win) == 2:
        opt.zero_grad()
        (win[0] - win[1]).pow(2).sum().backward()
        opt.step()
        win.clear()
