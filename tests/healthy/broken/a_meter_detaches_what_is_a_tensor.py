# GF403: what is a tensor is added with its graph
import torch


class Meter:
    def __init__(self):
        self.sum = 0.0

    def update(self, v):
        if not torch.is_tensor(v):
            v = v.detach()
        self.sum += v


def train(model, loader, opt):
    meter = Meter()
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss)
    return meter.sum


net = torch.nn.Linear(3, 1)
pairs = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(2)]
print(train(net, pairs, torch.optim.SGD(net.parameters(), lr=0.1)))
