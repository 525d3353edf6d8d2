"""The way to a line is found by reading."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gradfix.driver.targets import modules, place, to_line

LIBRARY = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return self.inner(x)

    def inner(self, x):
        return x * 2

    def loss(self, x):
        return self(x).sum()


class Agent:
    def __init__(self, net):
        self.net = net

    def update(self, batch):
        return self._of(batch)

    def _of(self, batch):
        return scaled(batch)


def scaled(x):
    return x * 3
"""


@pytest.mark.parametrize(
    ("line", "ways"),
    [
        pytest.param(9, ["Net"], id="a forward is reached by calling the module"),
        pytest.param(13, ["Net", "Net.inner"], id="what forward calls is reached by calling the module"),
        pytest.param(16, ["Net.loss"], id="another method is called itself"),
        pytest.param(27, ["Agent._of", "Agent.update"], id="a method is also reached by what calls it"),
        pytest.param(
            31, ["scaled", "Agent._of", "Agent.update"], id="a function is called, or what calls it"
        ),
        pytest.param(1, [], id="the module's own statements have no way to them"),
    ],
)
def test_the_ways_to_a_line(line: int, ways: list[str]) -> None:
    assert [one.shown for one in to_line("lib.py", ast.parse(LIBRARY), line)] == ways


def test_every_module_of_a_file_is_a_target() -> None:
    assert [one.name for one in modules("lib.py", ast.parse(LIBRARY))] == ["Net"]


def test_a_file_of_a_package_is_imported_from_above_it(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "inner").mkdir(parents=True)
    for folder in ("pkg", "pkg/inner"):
        (tmp_path / folder / "__init__.py").touch()
    found = place(str(tmp_path / "pkg" / "inner" / "net.py"), ast.parse(""))
    assert (found.root, found.module) == (str(tmp_path), "pkg.inner.net")


def test_a_file_is_imported_from_where_its_own_imports_are_found(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "layers.py").touch()
    found = place(str(tmp_path / "models" / "net.py"), ast.parse("from layers import Block"))
    assert (found.root, found.module) == (str(tmp_path), "models.net")


OPEN = """\
from torch import nn


class Open(nn.Module):
    def training_step(self, batch):
        return self.shared(batch).sum()

    def shared(self, batch):
        raise NotImplementedError


class Whole(Open):
    def shared(self, batch):
        return batch * 2
"""


def test_what_a_class_leaves_open_one_that_inherits_from_it_has() -> None:
    found = to_line("code.py", ast.parse(OPEN), 6)
    assert [one.shown for one in found] == ["Open.training_step", "Whole.training_step"]


def test_of_a_line_that_a_rewrite_has_left_empty_the_one_before_is_reached() -> None:
    (way,) = to_line("code.py", ast.parse("def f(x):\n    y = x * 2\n\n    return y\n"), 3)
    assert way.lines == (2,)
