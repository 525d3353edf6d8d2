"""Gradients that are asked for with a graph of their own: their shape, and whether they surely have it."""

from __future__ import annotations

import textwrap

import pytest
from short import kinds

SLOPES = {
    "of layers that learn": ("net = nn.Linear(3, 1)\ny = net(x)", True),
    "of a convolution": (
        "x = torch.ones(2, 1, 5, requires_grad=True)\nnet = nn.Conv1d(1, 1, 3)\ny = net(x)",
        True,
    ),
    "of a product": ("w = torch.ones(3, 2, requires_grad=True)\ny = (x @ w).tanh()", True),
    "of a weight, beside data that may learn": (
        "w = torch.ones(2, 3, requires_grad=True)\nz = nn.functional.linear(x * 2, w)\nx = w\ny = z",
        None,
    ),
    "of a bias": (
        "w, b = torch.ones(1, 3, requires_grad=True), torch.ones(1, requires_grad=True)\n"
        "y = nn.functional.linear(x, w, b) * 2\nx = b.expand(2)\ny = y + x.sum()",
        False,
    ),
    "of a layer that is frozen": ("net = nn.Linear(3, 1).requires_grad_(False)\ny = net(x)", False),
    "of a layer frozen since": ("net = nn.Linear(3, 1)\ny = net(x)\nnet.requires_grad_(False)", None),
    "of numbers alone": ("y = 3 * x", False),
    "past a product that is cut off": ("net = nn.Linear(3, 1)\ny = net(x).detach() + x", False),
    "of a product that what is asked for isn't in": (
        "net = nn.Linear(3, 3)\ny = net(torch.ones(2, 3)) + x",
        False,
    ),
}


def program(made: str) -> str:
    return (
        "import torch\nfrom torch import nn\nx = torch.ones(2, 3, requires_grad=True)\n"
        f"{made}\n(slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)\n"
    )


@pytest.mark.parametrize(("made", "recorded"), SLOPES.values(), ids=SLOPES)
def test_a_slope_of_several_numbers_is_no_loss_where_it_surely_has_a_graph(
    made: str, recorded: bool | None
) -> None:
    found = kinds(program(made) + "slope.backward()\n")
    assert ("non_scalar_backward" in found) is (recorded is True)


@pytest.mark.torch
@pytest.mark.parametrize(("made", "recorded"), SLOPES.values(), ids=SLOPES)
def test_torch_says_so_too(made: str, recorded: bool | None) -> None:
    names: dict[str, object] = {}
    exec(textwrap.dedent(program(made)), names)
    slope = names["slope"]
    assert recorded is None or slope.requires_grad is recorded  # type: ignore[attr-defined]


ASKED = """
critic = nn.Linear(3, 1)
for real in torch.ones(2, 4, 3):
    mixed = (0.5 * real).requires_grad_()
    scores = critic(mixed){cut}
    (slope,) = torch.autograd.grad(scores.sum(){past}, mixed, create_graph=True)
    slope.pow(2).sum().backward()
"""


@pytest.mark.parametrize(
    ("cut", "past", "expected"),
    [
        pytest.param(".detach()", "", True, id="what was cut off"),
        pytest.param("", "", False, id="what has its graph"),
        pytest.param(".detach()", " + mixed.pow(2).sum()", False, id="what has one besides"),
    ],
)
def test_no_gradient_can_be_asked_for_of(cut: str, past: str, expected: bool) -> None:
    found = kinds("import torch\nfrom torch import nn\n" + ASKED.format(cut=cut, past=past))
    assert ("detached_loss_path" in found) is expected
