# The thread calls the method that it is given.
import threading

import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    t = threading.Thread(target=opt.zero_grad)
    t.start()
    t.join()
    net(torch.randn(2, 4)).pow(2).mean().backward()
    opt.step()
