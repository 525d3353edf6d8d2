# GF101: what isn't "none" may be "sigmoid"
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        if self.cfg.get("act") == "sigmoid":
            h = torch.sigmoid(h)
        if self.cfg.get("act") != "none":
            h += x
        return h


import json

for cfg in json.loads('[{"act": "none"}, {"act": "sigmoid"}]'):
    Block(cfg)(torch.randn(2, 4)).sum().backward()
