# What was cleared is put back before the step.
import torch
import torch.nn as nn

m = nn.Linear(3, 1)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
params = dict(m.named_parameters())

for _ in range(3):
    opt.zero_grad()
    m(torch.randn(4, 3)).pow(2).mean().backward()
    kept = {n: p.grad for n, p in m.named_parameters()}
    opt.zero_grad()
    for n in kept:
        params[n].grad = kept[n]
    opt.step()
