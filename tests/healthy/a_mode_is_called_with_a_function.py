# enable_grad()(closure) runs the closure in that mode.
import torch
import torch.nn.functional as F
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base):
        super().__init__(params, {})
        self.base = base(self.param_groups, lr=0.1)

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        closure()
        self.base.step()


model = nn.Linear(6, 3)
optimizer = SAM(model.parameters(), torch.optim.SGD)
for x, y in [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(3)]:

    def closure():
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    optimizer.zero_grad()
    optimizer.step(closure)
