# Who lets go of the slots still has the gradients in a list.
import torch
from torch import nn

network = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 3))
for x, y in [(torch.randn(8, 5), torch.randn(8, 3)) for _ in range(2)]:
    params = list(network.parameters())
    loss = (network(x) - y).pow(2).mean()
    loss.backward()
    grads = [p.grad for p in params]
    for p in params:
        p.grad = None
    with torch.no_grad():
        for p, g in zip(params, grads):
            p.add_(g, alpha=-0.05)
