# Nothing in the list is to learn.
import torch
import torch.nn.functional as F
from torch import nn


class VGGLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.slices = [nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(2)]
        for s in self.slices:
            for p in s.parameters():
                p.requires_grad = False

    def forward(self, x, y):
        l = 0
        for s in self.slices:
            x, y = s(x), s(y)
            l += F.l1_loss(x, y.detach())
        return l


g = nn.Linear(4, 4)
c = VGGLoss()
o = torch.optim.SGD(g.parameters(), 0.1)
for i in range(2):
    o.zero_grad()
    c(g(torch.randn(2, 4)), torch.randn(2, 4)).backward()
    o.step()
