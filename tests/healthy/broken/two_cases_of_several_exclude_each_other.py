# GF203: "val" is in both cases
import torch
from torch import nn


def run(net, opt, x, mode):
    match mode:
        case "val" | "test":
            with torch.no_grad():
                loss = net(x).pow(2).mean()
        case _:
            loss = net(x).pow(2).mean()
    match mode:
        case "train" | "val":
            opt.zero_grad()
            loss.backward()
            opt.step()


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for mode in ("train", "val", "warmup", "test"):
    run(net, opt, torch.randn(2, 4), mode)
