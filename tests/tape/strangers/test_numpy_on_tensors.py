"""numpy asks a tensor for its own method where it has one: what comes back has the graph."""

from __future__ import annotations

import pytest
from short import kinds

TRAIN = """
import numpy as np
from models import Net
net = {}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 4, 2):
    opt.zero_grad()
    loss = F.mse_loss({}, torch.ones(4))
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("net", ["Net()", "nn.Linear(2, 1)"])
def test_what_numpy_squeezes_keeps_its_graph(net: str) -> None:
    assert kinds(TRAIN.format(net, "np.squeeze(net(x))")) == set()


def test_what_was_made_an_array_has_none() -> None:
    found = kinds(TRAIN.format("nn.Linear(2, 1)", "torch.as_tensor(np.squeeze(net(x).detach().numpy()))"))
    assert len(found) == 1 and found < {"converted_loss_path", "detached_loss_path"}
