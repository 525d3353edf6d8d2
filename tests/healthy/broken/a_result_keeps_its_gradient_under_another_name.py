# GF106: a result keeps no gradient
import torch

theta = torch.zeros(5, requires_grad=True)
for it in range(4):
    loss = ((theta - 1) ** 2).sum()
    loss.backward(retain_graph=True)
    new = theta - 0.1 * theta.grad
    theta = new
