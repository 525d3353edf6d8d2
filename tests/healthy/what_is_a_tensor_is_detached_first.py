# is_tensor holds for what has a graph.
import torch
import torch.nn as nn

model = nn.Linear(3, 1)


def to_numpy(v):
    if torch.is_tensor(v):
        v = v.detach()
    return v.numpy()


out = model(torch.randn(4, 3))
out.mean().backward()
print(to_numpy(out))
