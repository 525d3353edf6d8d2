"""A test that is left behind reads as if a person had written it."""

from __future__ import annotations

import ast

import pytest

from gradfix.driver.recipe import Recipe, Target
from gradfix.driver.values import Argument, Number, Tensor
from gradfix.regression.mended import Check, Mended
from gradfix.regression.text import file, function, imported, unlike

TARGET = Target("/p/net.py", "/p", "net", "Net", "module", line=3)
RECIPE = Recipe(
    TARGET,
    (Argument("width", Number(4), False),),
    (Argument("x", Tensor((2, 4)), False),),
    learns=False,
    repeats=1,
)


def mended(message: str = "`y += 1` overwrites what exp saved") -> Mended:
    return Mended("/p/net.py", "net.py", "GF101", 9, message, b"", b"")


def test_a_file_has_imports_and_functions_in_the_usual_layout() -> None:
    piece = function(Check(RECIPE, "it", ("assert model.fc.weight.grad is not None",)), mended())
    text = file([piece], "Gradients through net.py.")
    assert (
        text
        == '''"""Gradients through net.py."""

import torch
from torch.nn import functional as F

from net import Net


def test_it():
    """Without the fix, `y += 1` overwrites what exp saved (GF101)."""
    torch.manual_seed(0)
    model = Net(4)
    x = torch.randn(2, 4)

    output = model(x)
    loss = F.mse_loss(output, torch.randn_like(output))
    loss.backward()

    assert model.fc.weight.grad is not None
'''
    )


def test_a_long_message_is_wrapped_and_cannot_end_its_docstring() -> None:
    piece = function(Check(RECIPE, "it"), mended('a "quoted" \\ word """ ' + "and more " * 20))
    assert max(map(len, piece.lines)) <= 88
    compile("\n".join(piece.lines), "it.py", "exec")


def test_what_is_not_needed_is_not_imported() -> None:
    piece = function(Check(RECIPE, "it", ("assert model",), "built"), mended())
    assert not any("functional" in line for line in piece.imports)
    names = {node.id for node in ast.walk(ast.parse("\n".join(piece.lines))) if isinstance(node, ast.Name)}
    assert "x" not in names


def test_names_of_one_module_are_imported_in_one_line() -> None:
    lines = ["from net import B", "import torch", "from net import A", "import math"]
    assert imported(lines) == ["import math", "", "import torch", "", "from net import A, B"]


@pytest.mark.parametrize("count", [2, 3])
def test_no_two_tests_have_one_name(count: int) -> None:
    piece = function(Check(RECIPE, "it"), mended())
    names = [each.name for each in unlike([piece] * count)]
    assert names[:2] == ["test_it", "test_it_2"] and len(set(names)) == count
