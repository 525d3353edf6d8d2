# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w = torch.randn(3, 4, requires_grad=True)
x = w * 2
y = x.max(1).values
z = y.exp()
z += 1
i = x.topk(2, dim=1).indices
loss = z.sum() + x.gather(1, i).sum()
i[0] = 0
loss.backward()
