# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
import torch.nn.functional as F
w6 = torch.ones(4, requires_grad=True)
w7 = torch.zeros(3, 4, requires_grad=True)
with torch.inference_mode():
    w6.data = w6.data * 2
loss13 = F.linear(w7, w6)
