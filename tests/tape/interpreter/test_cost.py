"""What costs more than it may is given up, and nothing else with it."""

from __future__ import annotations

import pytest
from short import analysis, kinds


def test_twelve_nested_loops_cost_a_sum_and_not_a_product() -> None:
    loops = "".join(f"{'    ' * i}for i{i} in stream{i}():\n" for i in range(12))
    body = f"w = torch.ones(3, requires_grad=True)\n{loops}{'    ' * 12}y = w.exp()\n{'    ' * 12}y += 1\n"
    assert not analysis(body).too_complex


def test_what_a_function_of_calls_that_double_leaves_behind_is_still_seen() -> None:
    levels = "".join(f"def f{i}(x):\n    a = f{i + 1}(x)\n    return f{i + 1}(a * 2)\n" for i in range(40))
    body = levels + "def f40(x):\n    return x.exp()\nw = torch.ones(3, requires_grad=True)\nf0(w)\n"
    found = analysis(body + "y = w.exp()\ny += 1\ny.sum().backward()\n")
    assert not found.too_complex
    assert "inplace_overwrites_saved" in {defect.kind for defect in found.defects}


def test_modules_that_hold_two_of_a_kind_at_every_level_are_not_all_built() -> None:
    head = "(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    body = f"class M0{head}        self.a = nn.Linear(3, 3)\n"
    body += "    def forward(self, x):\n        return self.a(x)\n"
    for i in range(1, 40):
        body += f"class M{i}{head}        self.a, self.b = M{i - 1}(), M{i - 1}()\n"
        body += "    def forward(self, x):\n        return F.relu(self.b(self.a(x)))\n"
    found = analysis(
        body + "w = nn.Linear(3, 3)\ny = w(M39()(torch.ones(3))).exp()\ny += 1\ny.sum().backward()\n"
    )
    assert not found.too_complex
    assert "inplace_overwrites_saved" in {defect.kind for defect in found.defects}


PAST_THE_LIMIT = "    for flag in range(2):\n        pass\n" * 40
"""Enough text for a call that nobody would follow thirty times for nothing."""


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("opt.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n    opt.step()", set()),
        ("net(torch.ones(2, 3)).sum().backward()\n    opt.step()", {"missing_zero_grad"}),
    ],
    ids=["which clears each time", "which never clears"],
)
def test_a_function_that_trains_is_followed_each_time(turn: str, expected: set[str]) -> None:
    body = "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    body += f"def turn():\n{PAST_THE_LIMIT}    {turn}\n" + "turn()\n" * 30
    assert kinds(body) == expected


def test_a_step_after_thirty_calls_that_only_clear_finds_nothing() -> None:
    body = "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    body += f"def clear():\n{PAST_THE_LIMIT}    opt.zero_grad()\n"
    turn = "clear()\nnet(torch.ones(2, 3)).sum().backward()\nopt.step()\n"
    assert kinds(body + turn * 30) == set()


def test_what_cost_too_much_in_one_function_does_not_cost_the_others_theirs() -> None:
    deep = "".join(f"def f{i}(x):\n    a = f{i + 1}(x)\n    return f{i + 1}(a * 2)\n" for i in range(11))
    last = "def f11(x):\n    x += 1\n    return x.exp()\n"
    healthy = (
        "def g(y):\n    w = torch.ones(3, requires_grad=True)\n"
        "    h = w.exp()\n    h += 1\n    h.sum().backward()\n"
    )
    found = analysis(deep + last + healthy)
    assert "inplace_overwrites_saved" in {defect.kind for defect in found.defects}


def test_a_call_with_many_arguments_that_vary_is_not_followed_for_every_combination() -> None:
    body = "import torch.nn as nn\nlayers = []\n"
    for i in range(30):
        body += f"layers.append(nn.ReLU() if f{i}() else nn.Tanh())\n"
    assert not analysis(body + "net = nn.Sequential(*layers)\n").too_complex
