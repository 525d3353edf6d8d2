# Before the weight is used again another value is put there.
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            kept = self.layer.weight.data.clone()
            self.layer.weight.data = kept / 2
        return self.layer(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    x = torch.randn(2, 4, requires_grad=True)
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.inference_mode():
        print(net(x).mean().item())
