# Under the name of a deleted parameter a result isn't registered.
import torch
from torch import nn

lin = nn.Linear(6, 8)
w = lin.weight
del lin._parameters["weight"]
lin.v = nn.Parameter(w.data)
lin.weight = lin.v * 2
opt = torch.optim.Adam(lin.parameters(), 1e-2)
for i in range(4):
    opt.zero_grad()
    lin.weight = lin.v * 2
    lin(torch.randn(8, 6)).pow(2).mean().backward()
    opt.step()
