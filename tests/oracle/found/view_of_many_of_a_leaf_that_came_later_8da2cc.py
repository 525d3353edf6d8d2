# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
c3 = torch.zeros(3, 4)
p4, p5 = c3[:2]
c3.requires_grad = True
p4.clamp_(-1, 1)
