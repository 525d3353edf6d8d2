# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w2 = torch.zeros(3, 4, requires_grad=True)
losses = []
for part in range(2):
    w2.data.clamp_(-0.1, 0.1)
    loss = (w2 * w2).mean()
    losses.append(loss)
final = sum(l for l in losses)
final.backward()
