# What is VAL or TEST isn't TRAIN.
import enum

import torch
from torch import nn


class Phase(enum.Enum):
    TRAIN = "train"
    VAL = "val"
    TEST = "test"


def run(net, opt, x, phase):
    if phase in (Phase.VAL, Phase.TEST):
        with torch.no_grad():
            loss = net(x).pow(2).mean()
    else:
        loss = net(x).pow(2).mean()
    if phase is Phase.TRAIN:
        opt.zero_grad()
        loss.backward()
        opt.step()


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for phase in Phase:
    run(net, opt, torch.randn(2, 4), phase)
