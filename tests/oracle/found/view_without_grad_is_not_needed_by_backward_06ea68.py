# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
x = w * 2
v = x.view(3, 4)
with torch.no_grad():
    u = torch.flatten(v)
t = u * u
v.mul_(2)
loss = v.sum() + t.sum()
loss.backward()
