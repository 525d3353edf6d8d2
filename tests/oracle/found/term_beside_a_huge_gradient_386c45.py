# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
w9 = torch.ones(3, 4, requires_grad=True)
w10 = torch.full([3, 4], 0.5, requires_grad=True)
x11 = F.linear(w9, w10) @ w10
out12 = x11 * 1
for i, t in enumerate([x11, out12]):
    out12 += t.exp()
loss17 = F.l1_loss(out12, x11)
loss17.backward()
d20 = torch.tensor(w9)
x19 = w9.sub(d20)
loss21 = torch.mean(x19)
loss21.backward()
