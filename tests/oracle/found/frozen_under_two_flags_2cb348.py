# flags 2
# ruff: noqa
# mypy: ignore-errors
import os
import sys
import torch
flag0 = len(sys.argv) > 5
flag1 = os.environ.get('GRADFIX_ORACLE')
w3 = torch.zeros(3, 4, requires_grad=True)
if flag1:
    if flag0:
        w3.requires_grad_(False)
x21 = torch.stack([w3, w3])
x21.sum().backward()
