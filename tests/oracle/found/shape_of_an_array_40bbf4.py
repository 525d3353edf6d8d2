# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w2 = torch.ones(3, 4, requires_grad=True)
d5 = torch.from_numpy(w2.detach().numpy())
x6 = torch.bmm(d5[None], w2.t()[None])
x6.backward()
