"""A recipe is printed as the program that a person would have typed."""

from __future__ import annotations

import json

from gradfix.driver import recipe, values
from gradfix.driver.recipe import Recipe, Root, Target
from gradfix.driver.values import Argument, Config, Entries, Items, Made, Number, Source, Tensor, Value
from gradfix.driver.written import program

NET = Target("/p/lib.py", "/p", "pkg.lib", "Net", "module")
X = Argument("x", Tensor((2, 8)), keyword=False)


def test_a_module_is_built_and_trained_for_two_turns() -> None:
    made = Recipe(NET, (Argument("width", Number(8)),), (X,))
    assert (
        program(made)
        == """\
import torch
from torch.nn import functional as F

from pkg.lib import Net

torch.manual_seed(0)
model = Net(width=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(2):
    x = torch.randn(2, 8)
    output = model(x)
    loss = F.mse_loss(output, torch.randn_like(output))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    )


def test_what_has_no_parameters_gets_inputs_that_carry_gradients() -> None:
    made = Recipe(NET, (), (X,), (Root("", scalar=True),), learns=False, carries=True)
    assert "    x = torch.randn(2, 8, requires_grad=True)\n    loss = model(x.clone())\n" in program(made)


def test_what_steps_by_itself_is_only_called() -> None:
    agent = Target("/p/lib.py", "/p", "lib", "DQNAgent", "method", "update")
    made = Recipe(agent, (), (Argument("batch", Items((Tensor((2, 4)),), "tuple"), False),), ())
    assert "dqn_agent = DQNAgent()\n\nfor _ in range(2):\n    dqn_agent.update((torch.randn(2, 4),))\n" in (
        program(made)
    )


def test_every_value_comes_back_from_json() -> None:
    every: list[Value] = [
        Tensor((2,), "index", 5),
        Number(None),
        Source("nn.ReLU", ("from torch import nn",)),
        Items((Number(1),)),
        Entries((("'a'", Number(2)),)),
        Config((("width", Number(3)),)),
        Made("nn.Linear", (Argument("", Number(2), keyword=False),)),
    ]
    made = Recipe(NET, tuple(Argument(f"a{i}", one) for i, one in enumerate(every)))
    assert recipe.from_json(json.loads(json.dumps(values.to_json(made)))) == made
