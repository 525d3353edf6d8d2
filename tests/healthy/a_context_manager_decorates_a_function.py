# The function runs within the manager, which switches the gradients on.
from contextlib import contextmanager

import torch


@contextmanager
def grads():
    with torch.enable_grad():
        yield


@grads()
def inner(x):
    x = x.clone().requires_grad_()
    x.pow(2).sum().backward()
    return x.grad


with torch.no_grad():
    inner(torch.ones(3))
