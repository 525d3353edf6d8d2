# get_submodule gives the part itself, where a layer that learns is put.
import torch
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.randn(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T


class Block(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.q_proj, self.ff = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x):
        return x + self.ff(self.q_proj(x).relu())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


model = Model()
for p in model.parameters():
    p.requires_grad = False
for name, module in list(model.named_modules()):
    if isinstance(module, nn.Linear) and name.split(".")[-1] == "q_proj":
        parent = model.get_submodule(".".join(name.split(".")[:-1]))
        setattr(parent, name.split(".")[-1], LoRA(module))
opt = torch.optim.AdamW([p for n, p in model.named_parameters() if p.requires_grad], lr=1e-3)
for it in range(4):
    loss = model(torch.randn(2, 8)).pow(2).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
