"""What code of many shapes can be called with is found under torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver, Target, Undriven
from gradfix.driver.targets import methods, modules, place, target, to_line
from gradfix.driver.written import summary
from gradfix.verify import Launcher

pytestmark = pytest.mark.torch

SHAPES = Path(__file__).parent / "shapes"
MODULES, TRAINING = (SHAPES / f"{name}.py" for name in ("modules", "training"))


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as one:
        yield one


def functions(path: Path) -> list[Target]:
    """Every function, and every method that anybody may call."""
    tree = ast.parse(path.read_text())
    where, found = place(str(path), tree), []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append(target(where, node, "function"))
        elif isinstance(node, ast.ClassDef):
            found += [target(where, node, "method", name) for name in methods(node) if name[0] != "_"]
    return found


def test_modules_of_many_shapes_are_built_and_called(launcher: Launcher) -> None:
    """Transformers with a configuration, generators, recurrent nets with a state, losses, residual nets."""
    wanted = modules(str(MODULES), ast.parse(MODULES.read_text()))
    made = Maker(launcher).made(wanted)
    assert len(made) > 15
    assert [one for one in made if isinstance(one, Undriven)] == []


def test_loops_agents_and_losses_get_what_they_are_handed(launcher: Launcher) -> None:
    made = Maker(launcher).made(functions(TRAINING))
    assert [one for one in made if isinstance(one, Undriven)] == []
    texts = {one.recipe.target.shown: one.text for one in made if isinstance(one, Driver)}
    assert "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)\nagent = Agent(" in texts["Agent.update"]
    assert "torch.randint(2, (2,))) for _ in range(4)]" in texts["train_epoch"]


def test_what_the_project_calls_it_with_comes_first(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, wide):\n"
        "        super().__init__()\n"
        "        self.fc = nn.Linear(wide, 2)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom net import Net\n\nwide = 3 * 7\nmodel = Net(wide)\nmodel(torch.randn(5, wide))\n"
    )
    path = str(tmp_path / "net.py")
    (one,) = Maker(launcher).made(modules(path, ast.parse((tmp_path / "net.py").read_text())))
    assert isinstance(one, Driver)
    assert summary(one.recipe) == "Net(wide=21)(torch.randn(5, 21))"
    assert one.recipe.assumed == ()


def test_a_flag_around_the_lines_is_turned(launcher: Launcher) -> None:
    tree = ast.parse(MODULES.read_text())
    line = next(i for i, text in enumerate(MODULES.read_text().splitlines(), 1) if "y += x" in text)
    (one,) = Maker(launcher).made(to_line(str(MODULES), tree, line)[:1])
    assert isinstance(one, Driver)
    assert "residual=True" in one.text


def test_what_takes_its_process_down_leaves_the_others_alone(launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "nets.py"
    path.write_text(
        "import os\nfrom torch import nn\n\n\nclass Gone(nn.Module):\n    def forward(self, x):\n"
        "        os._exit(3)\n\n\nclass Stays(nn.Linear):\n    def forward(self, x):\n"
        "        return super().forward(x)\n"
    )
    gone, stays = Maker(launcher).made(modules(str(path), ast.parse(path.read_text())))
    assert isinstance(gone, Undriven)
    assert isinstance(stays, Driver)


def test_what_is_handed_on_by_name_is_given_as_its_taker_uses_it(launcher: Launcher, tmp_path: Path) -> None:
    """Gathered keywords, a dict of options, and a nested one."""
    path = tmp_path / "net.py"
    path.write_text(
        "from torch import nn\n\n\nclass Inner(nn.Module):\n    def __init__(self, *, wide, deep):\n"
        "        super().__init__()\n"
        "        self.fc = nn.Sequential(*[nn.Linear(wide, wide) for _ in range(deep)])\n\n"
        "    def forward(self, x):\n        return self.fc(x)\n\n\n"
        "class Gathered(nn.Module):\n    def __init__(self, **kwargs):\n        super().__init__()\n"
        "        self.inner = Inner(**kwargs)\n\n"
        "    def forward(self, x):\n        return self.inner(x)\n\n\n"
        "class Listed(Gathered):\n    def __init__(self, options):\n        super().__init__(**options)\n\n\n"
        "class Nested(Gathered):\n    def __init__(self, options):\n"
        '        super().__init__(wide=options["net"]["wide"], deep=options["net"]["deep"])\n'
    )
    made = Maker(launcher).made(modules(str(path), ast.parse(path.read_text())))
    assert [one for one in made if isinstance(one, Undriven)] == []


def test_a_loop_that_takes_lists_apart_gets_a_loss_of_two(launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    path.write_text(
        "def train(loader, model, loss_fn, optimizer):\n    model.train()\n"
        "    for data, target in loader:\n        data = data.float()\n"
        "        if type(data) not in (tuple, list):\n            data = (data,)\n"
        "        optimizer.zero_grad()\n        outputs = (model(*data),)\n"
        "        outputs += (target,)\n        loss = loss_fn(*outputs)\n"
        "        loss.backward()\n        optimizer.step()\n"
    )
    (made,) = Maker(launcher).made(functions(path))
    assert isinstance(made, Driver), made
    assert "nn.MSELoss()" in made.text


def test_a_function_that_is_compiled_to_a_script_is_called_as_it_was_written(
    launcher: Launcher, tmp_path: Path
) -> None:
    path = tmp_path / "gate.py"
    path.write_text(
        "import torch\n\n\n@torch.jit.script\ndef gate(x, y):\n"
        "    return torch.tanh(x + y) * torch.sigmoid(y)\n"
    )
    (made,) = Maker(launcher).made(functions(path))
    assert isinstance(made, Driver), made
