# __post_init__ runs once the fields are set, and changes one.
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


config = Config(act="none")
lin = nn.Linear(4, 4)
h = lin(torch.randn(2, 4))
h = torch.sigmoid(h) if config.sig else h * 1.0
h += 1
h.sum().backward()
