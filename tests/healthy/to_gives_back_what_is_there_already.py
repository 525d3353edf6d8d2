# On the same device to() gives back the leaf itself, whose gradient is cleared.
import torch

device = torch.device("cpu")


def invert(generator, target, steps=500):
    z = torch.rand(4, 8).requires_grad_()
    opt = torch.optim.Adam([z], lr=0.1)
    z = z.to(device)
    for _ in range(steps):
        if z.grad is not None:
            z.grad.zero_()
        loss = torch.sum(torch.abs(target - generator(z)))
        loss.backward()
        opt.step()
    return z


invert(torch.nn.Linear(8, 2), torch.zeros(4, 2), 3)
