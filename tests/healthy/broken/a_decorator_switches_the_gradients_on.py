# GF203: the decorator leaves the mode as it is
import torch


def with_grad(fn):
    def inner(*args):
        print(len(args))
        return fn(*args)

    return inner


@with_grad
def adapt(x):
    x = x.detach().requires_grad_()
    loss = (x**2).sum()
    loss.backward()
    return x.grad


@torch.no_grad()
def sample(x):
    for _ in range(3):
        x = x - 0.1 * adapt(x)
    return x


assert sample(torch.ones(3)).max() < 1
