# The recursion comes to each layer, however deep.
import torch
from torch import nn

net = nn.Sequential(
    nn.ReLU(),
    nn.Sequential(
        nn.Sequential(nn.Linear(8, 8), nn.ReLU()),
        nn.Sequential(nn.Sequential(nn.Sigmoid(), nn.ReLU(inplace=True))),
    ),
)


def fix(m):
    for n, c in m.named_children():
        if hasattr(c, "inplace"):
            c.inplace = False
        fix(c)


fix(net)
net(torch.randn(2, 8)).pow(2).mean().backward()
