# GF302: the graph has two backwards
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn


def frames(path):
    if path.is_file():
        n, feats = np.load(path)
        if n.ndim == 2:
            return [torch.from_numpy(feats)]


class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attn = nn.Linear(d, 1)
        self.cls = nn.Linear(d, 3)

    def forward(self, x):
        return self.cls((torch.softmax(self.attn(x), dim=1) * x).sum(1))


def run(path, x, y):
    fr = frames(path)
    head = Head(fr[0].size(1))
    loss = nn.functional.mse_loss(head(x), y)
    loss.backward()
    loss.backward()


with tempfile.TemporaryDirectory() as folder:
    kept = Path(folder) / "kept.npy"
    np.save(kept, np.ones((2, 3, 8), np.float32))
    run(kept, torch.randn(2, 3, 8), torch.randn(2, 3))
