# GF101: the break comes behind relu
import torch
import torch.nn.functional as F
from torch import nn

stack = nn.ModuleList(nn.Linear(5, 5) for _ in range(2))
opt = torch.optim.SGD(stack.parameters(), lr=0.1)
for x in torch.randn(2, 4, 5):
    i = 0
    while True:
        x = stack[i](x)
        i += 1
        x = F.relu(x)
        if i == len(stack):
            break
    x *= 0.5
    loss = x.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
