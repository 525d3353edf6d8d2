# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w9 = torch.ones(3, 4, requires_grad=True)
w10 = torch.randn(3, 4)
d11 = torch.tensor(w10.tolist())
x12 = d11
x12 = x12.contiguous() @ w9.abs().add(1).log().t()
x13 = d11
y14 = x13
y14.neg_()
loss16 = x12.sum()
loss16.backward()
