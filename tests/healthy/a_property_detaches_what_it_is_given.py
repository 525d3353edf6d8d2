# The setter of the property runs and detaches.
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self._h = torch.zeros(1, 4)

    @property
    def hidden(self):
        return self._h

    @hidden.setter
    def hidden(self, value):
        self._h = value.detach()

    def forward(self, x):
        out = self.cell(x, self.hidden)
        self.hidden = out
        return out


net = Agent()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(4):
    opt.zero_grad()
    net(torch.randn(1, 4)).pow(2).mean().backward()
    opt.step()
