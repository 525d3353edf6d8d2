# The loss reduces as it was told last.
import torch
from torch import nn

crit = nn.MSELoss(reduction="none")
crit.reduction = "mean"
net = nn.Linear(4, 1)
crit(net(torch.randn(2, 4)), torch.randn(2, 1)).backward()
