# flags 0
# ruff: noqa
# mypy: ignore-errors
import torch
w3 = torch.zeros(3, 4, requires_grad=True)
x5 = torch.einsum('ij,kj->ik', w3, w3)
x5.backward()
