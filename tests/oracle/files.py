"""Files that only define: a module whose forward others call, a function that trains what it is given."""

from __future__ import annotations

from .nets import module_class
from .scope import Writer
from .training import loop_part, orders
from .words import MATRIX

CALLS_FORWARD = """net = {name}()
net(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()
"""
CALLS_TRAIN = """model = nn.Sequential(nn.Linear(4, 4), nn.{act}, nn.Linear(4, 4))
loader = [(torch.randn(3, 4), torch.rand(3, 4)) for _ in range(3)]
train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
"""


def model_file(w: Writer) -> None:
    call = module_class(w)
    w.driver = CALLS_FORWARD.format(name=call.split("(")[0])


def training_file(w: Writer) -> None:
    loop = "for step, (batch, target) in enumerate(loader):"
    with w.block("def train(model, loader, optimizer):"), w.block(loop):
        w.bind("batch", MATRIX, "constant", live=False)
        w.bind("target", MATRIX, "constant", live=False)
        w.loops.append("step")
        for part in w.c.weighted(orders(w)).split():
            loop_part(w, part, ("model", "optimizer", "batch", ""))
        w.loops.pop()
    w.driver = CALLS_TRAIN.format(act=w.c.pick(("Tanh()", "ReLU(inplace=True)", "GELU()")))
