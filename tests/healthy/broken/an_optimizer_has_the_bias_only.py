# GF105: the step writes the weight, too, which the second backward needs
import torch
from torch import nn

enc, dec = nn.Linear(4, 4), nn.Linear(4, 1)
named = [*enc.named_parameters(prefix="e"), *dec.named_parameters(prefix="d")]
od = torch.optim.SGD(dec.parameters(), lr=0.1)
oe = torch.optim.SGD([p for n, p in named if n.startswith("e")], lr=0.1)
for i in range(3):
    out = dec(enc(torch.randn(2, 4)))
    od.zero_grad()
    out.mean().backward(retain_graph=True)
    od.step()
    oe.zero_grad()
    out.pow(2).mean().backward()
    oe.step()
