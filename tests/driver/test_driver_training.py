"""What training code is handed: an optimizer for each network, losses, memories, loaders, and no GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_driver_search import functions

from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver
from gradfix.driver.targets import modules, to_line
from gradfix.driver.written import summary
from gradfix.verify import Launcher

pytestmark = pytest.mark.torch

LOOPS = Path(__file__).parent / "shapes" / "loops.py"


@pytest.fixture(scope="module")
def made() -> Iterator[dict[str, Driver]]:
    with Launcher() as launcher:
        found = Maker(launcher).made(functions(LOOPS))
    yield {one.recipe.target.shown: one for one in found if isinstance(one, Driver)}


def test_an_optimizer_steps_the_network_whose_gradients_are_new(made: dict[str, Driver]) -> None:
    text = made["adversaries"].text
    assert "for_critic = torch.optim.SGD(critic.parameters(), lr=0.01)" in text
    assert "for_generator = torch.optim.SGD(generator.parameters(), lr=0.01)" in text


def test_optimizers_in_a_dict_step_networks_in_another_one(made: dict[str, Driver]) -> None:
    text = made["Cycle.train"].text
    assert "'second': torch.optim.SGD(models['judge'].parameters(), lr=0.01)" in text
    assert "[*models['there'].parameters(), *models['back'].parameters()]" in text


def test_a_loss_that_comes_in_is_made_of_the_parameters_that_are_trained(made: dict[str, Driver]) -> None:
    assert "sum(one.square().sum() for one in learner.critic.parameters())" in made["Learner.learn"].text
    assert "loss is a loss of all parameters" in made["Learner.learn"].recipe.assumed


def test_a_network_with_methods_of_its_own_is_one_of_the_project(made: dict[str, Driver]) -> None:
    assert "policy = Policy(seen=" in made["Player.update"].text


def test_a_memory_gives_as_many_as_it_is_asked_for(made: dict[str, Driver]) -> None:
    assert "batch_size=2" in made["Player.update"].recipe.assumed


def test_loaders_are_looped_over_behind_what_counts_and_pairs_them(made: dict[str, Driver]) -> None:
    assert made["counted"].text.count("for _ in range(4)]") == 2


def test_what_goes_to_a_gpu_stays_where_there_is_none(made: dict[str, Driver]) -> None:
    assert "AtHome().__enter__()" in made["far_away"].text
    assert "what goes to a GPU stays on the CPU" in made["far_away"].recipe.assumed


def test_each_call_that_the_project_has_gets_its_turn(tmp_path: Path) -> None:
    """The first one runs through, and never comes to the lines."""
    path = tmp_path / "loops.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\ndef run(nets, x):\n    if len(nets) == 1:\n"
        "        return nets[0](x)\n    return nets[1](nets[0](x))\n"
    )
    (tmp_path / "use.py").write_text(
        "from torch import nn\nfrom loops import run\n\n\nclass Net(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(3, 3)\n\n\n"
        "run([Net()], 0)\nrun([Net(), Net()], 0)\n"
    )
    with Launcher() as launcher:
        (one,) = Maker(launcher).made(to_line(str(path), ast.parse(path.read_text()), 8))
    assert isinstance(one, Driver)
    assert one.recipe.target.lines == (8,)


def test_a_class_that_leaves_something_open_is_driven_through_one_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        "from torch import nn\n\n\nclass Open(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.fc = nn.Linear(4, 4)\n\n"
        "    def step(self, x):\n        loss = self.fc(x).detach().sum() + self.rest()\n"
        "        loss.backward()\n\n    def rest(self):\n        raise NotImplementedError\n"
    )
    (tmp_path / "whole.py").write_text(
        "import torch\nfrom base import Open\nfrom torch import nn\n\n\nclass Whole(Open):\n"
        "    def __init__(self, act):\n        super().__init__()\n        self.act = getattr(nn, act)()\n\n"
        "    def rest(self):\n        return self.act(torch.ones(1))\n"
    )
    (way,) = to_line(str(tmp_path / "base.py"), ast.parse((tmp_path / "base.py").read_text()), 11)
    with Launcher() as launcher:
        maker = Maker(launcher)
        (one,) = maker.made(maker.inherited(way))
    assert isinstance(one, Driver)
    assert summary(one.recipe) == 'Whole(act="ReLU").step(torch.randn(2, 4))'


def test_pictures_are_as_large_as_what_they_are_flattened_into(tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    path.write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.conv = nn.Conv2d(3, 7, 3, padding=1)\n        self.fc = nn.Linear(7 * 5 * 5, 2)\n\n"
        "    def forward(self, x):\n        return self.fc(self.conv(x).flatten(1))\n"
    )
    with Launcher() as launcher:
        (one,) = Maker(launcher).made(modules(str(path), ast.parse(path.read_text())))
    assert isinstance(one, Driver)
    assert "torch.randn(2, 3, 5, 5)" in one.text


def test_a_module_whose_train_is_its_training_is_left_to_be_called(tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.fc = nn.Linear(4, 2)\n\n"
        "    def train(self, x, turns):\n        for _ in range(turns):\n"
        "            self.fc(x).sum().backward()\n"
    )
    with Launcher() as launcher:
        one = Maker(launcher).made(functions(path))[-1]
    assert isinstance(one, Driver)
    assert summary(one.recipe) == "Net().train(torch.randn(2, 4), 2)"


def test_for_an_abstract_class_stands_one_that_inherits_from_it(tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Scale:\n    def __call__(self, x):\n"
        "        raise NotImplementedError\n\n\nclass Twice(Scale):\n    def __call__(self, x):\n"
        "        return x * 2\n\n\nclass Net(nn.Linear):\n    def __init__(self, scale: Scale):\n"
        "        super().__init__(4, 2)\n        self.scale = scale\n\n    def forward(self, x):\n"
        "        return super().forward(self.scale(x))\n"
    )
    with Launcher() as launcher:
        one = Maker(launcher).made(modules(str(path), ast.parse(path.read_text())))[-1]
    assert isinstance(one, Driver)
    assert "scale = Twice()" in one.text
