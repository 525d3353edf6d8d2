# without the fix: does not require grad
import torch
from torch import nn

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(3, (8,))

predicted = model(x).argmax(dim=1)
loss = (predicted != y).float().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
