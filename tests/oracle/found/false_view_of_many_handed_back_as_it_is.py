# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w1 = torch.ones(3, 4, requires_grad=True)
x6 = w1 * 2
for r7 in x6:
    if torch.is_grad_enabled():
        x8 = r7.contiguous()
    x6[:2].mul_(2)
