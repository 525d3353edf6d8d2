# All entries are written over by detached ones.
import torch
from torch import nn

cells = {"a": nn.GRUCell(4, 4), "b": nn.GRUCell(4, 4)}
opt = torch.optim.SGD([p for c in cells.values() for p in c.parameters()], lr=0.1)
state = {k: torch.zeros(1, 4) for k in cells}
for i in range(4):
    state = {k: c(torch.randn(1, 4), state[k]) for k, c in cells.items()}
    opt.zero_grad()
    sum(s.sum() for s in state.values()).backward()
    opt.step()
    state.update((k, s.detach()) for k, s in state.items())
