# parser.error ends the program.
import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frozen", action="store_true")
    args = parser.parse_args([])
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.frozen:
        for p in net.parameters():
            p.requires_grad_(False)
        parser.error("nothing to train")
    for i in range(3):
        opt.zero_grad()
        net(torch.randn(2, 4)).pow(2).mean().backward()
        opt.step()


main()
