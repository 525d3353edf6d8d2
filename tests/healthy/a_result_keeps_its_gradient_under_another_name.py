# retain_grad() was called on the tensor that has the name now.
import torch

theta = torch.zeros(5, requires_grad=True)
for it in range(4):
    loss = ((theta - 1) ** 2).sum()
    loss.backward(retain_graph=True)
    new = theta - 0.1 * theta.grad
    new.retain_grad()
    theta = new
