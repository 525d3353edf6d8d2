# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w3 = torch.zeros(3, 4, requires_grad=True)
c5 = torch.ones(3, 4)
for turn6 in range(2):
    w3.data += 1
    loss7 = (w3 - c5).abs().sum()
    loss7.backward()
    with torch.no_grad():
        w3.sub_(0.1 * w3.grad)
    w3.grad.data.zero_()
