# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
a = torch.randn(3, 4, requires_grad=True) * 2
b = torch.randn(3, 4)
y = F.kl_div(a, b, log_target=True)
b += 1
y.backward()
