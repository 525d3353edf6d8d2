# The recursion comes to each layer, however deep, and puts one there that learns.
import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return self.base(x) + x @ self.A


model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Sequential(nn.Linear(8, 8), nn.ReLU())))
model.requires_grad_(False)


def replace(m):
    for name, child in m.named_children():
        if isinstance(child, nn.Linear):
            setattr(m, name, LoRA(child))
        else:
            replace(child)


replace(model)
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for it in range(4):
    loss = model(torch.randn(2, 8)).pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
