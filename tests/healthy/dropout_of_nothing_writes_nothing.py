# Where p is 0 dropout gives back what it was given, in place or not.
import torch
import torch.nn as nn
import torch.nn.functional as F


class Unit(nn.Module):
    def __init__(self, width, drop=0.0):
        super().__init__()
        self.p = drop
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.conv(x))
        h = F.dropout(h, 0.0, self.training, inplace=True)
        return self.conv(h)


Unit(2)(torch.randn(1, 2, 4, 4)).sum().backward()
