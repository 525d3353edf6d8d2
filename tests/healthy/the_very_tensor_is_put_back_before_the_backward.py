# When backward needs the weight, it has the value of the forward again.
import torch
import torch.nn as nn
from torch.autograd import grad


def forward_with(model, x, params):
    kept = {}
    for name, p in model.named_parameters():
        if name in params:
            kept[name] = p.data.clone()
            p.data = params[name]
    out = model(x)
    for name, old in kept.items():
        model.get_parameter(name).data = old
    return out


def adapt(model, loss, names=None):
    ps = list(model.parameters())
    grads = grad(loss, ps, allow_unused=True, retain_graph=True)
    return {n: p - 0.1 * g for (n, p), g in zip(model.named_parameters(), grads)}


def inner(model, x, y, loss_fn, steps):
    fast = None
    for _ in range(steps):
        if fast is None:
            out = model(x)
        else:
            out = forward_with(model, x, fast)
        loss = loss_fn(out, y)
        if fast is None:
            fast = adapt(model, loss)
        else:
            kept = {}
            for name, p in model.named_parameters():
                if name in fast:
                    kept[name] = p.data.clone()
                    p.data = fast[name]
            fast.update(adapt(model, loss))
            for name, old in kept.items():
                model.get_parameter(name).data = old
    return fast


net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
inner(net, torch.randn(4, 10), torch.randint(0, 5, (4,)), nn.CrossEntropyLoss(), 3)
