# GF101: __post_init__ leaves the field as it was
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    act: str = "auto"
    sig: bool = True

    def __post_init__(self):
        if self.act != "auto":
            self.sig = self.act == "sig"


config = Config(act="sig")
lin = nn.Linear(4, 4)
h = lin(torch.randn(2, 4))
h = torch.sigmoid(h) if config.sig else h * 1.0
h += 1
h.sum().backward()
