# The loop goes on to the end of the list.
import torch
from torch import nn

cell = nn.GRUCell(4, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
state = [torch.zeros(1, 4)] * 6
for i in range(3):
    state = [cell(torch.randn(1, 4), s) for s in state]
    opt.zero_grad()
    torch.cat(state).sum().backward()
    opt.step()
    k = 0
    while k < len(state):
        state[k] = state[k].detach()
        k += 1
