# GF204: the entries are only looked at
import torch
import torch.nn as nn

m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
for p in m.parameters():
    p.requires_grad = False
params = dict(m.named_parameters())
for name in ("1.weight", "1.bias"):
    print(params[name].requires_grad)
opt = torch.optim.SGD(m.parameters(), lr=0.1)

for _ in range(3):
    opt.zero_grad()
    m(torch.randn(4, 3)).pow(2).mean().backward()
    opt.step()
