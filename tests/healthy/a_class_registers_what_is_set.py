# The class makes a ModuleList of each list of layers.
import torch
from torch import nn


class Net(nn.Module):
    def __setattr__(self, name, value):
        if isinstance(value, list) and value and all(isinstance(m, nn.Module) for m in value):
            value = nn.ModuleList(value)
        super().__setattr__(name, value)

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


net = Net()
assert len(list(net.parameters())) == 4
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt.zero_grad()
net(torch.randn(2, 4)).mean().backward()
opt.step()
