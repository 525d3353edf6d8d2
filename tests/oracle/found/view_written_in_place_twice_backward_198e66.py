# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w1 = torch.randn(3, 4, requires_grad=True)
c3 = torch.randn(3, 4)
x5 = c3.view_as(c3)
x5.sub_(w1, alpha=0.1)
loss7 = (x5+x5).sum()
loss7.backward()
loss14 = torch.mean(x5)
loss14.backward(retain_graph=True)
