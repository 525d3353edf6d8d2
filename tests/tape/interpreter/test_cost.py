"""What costs more than it may is given up, and nothing else with it."""

from __future__ import annotations

import ast

import pytest
from short import analysis, kinds

from gradfix.source import Source, parse
from gradfix.tape import entries
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import ALWAYS
from gradfix.tape.domain.trail import Trail
from gradfix.tape.domain.values import FALSE, TRUE, Alt, Value
from gradfix.tape.handlers import HANDLERS
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.limits import TooComplexError
from gradfix.tape.interpreter.program import Program
from gradfix.tape.machine import tested
from gradfix.tape.machine.machine import Machine
from gradfix.tape.machine.reports import Findings
from gradfix.tape.python import arithmetic
from gradfix.tape.torch import modules


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


def _turns_of(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a counter that goes up under so many tests is looked at, where alternatives are used up."""
    times = 0
    operate = arithmetic.operate

    def counted(vm: Interpreter, op: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
        nonlocal times
        times += 1
        return operate(vm, op, left, right, node)

    body = "class Rules:\n    def add(self, gains):\n"
    for i in range(count):
        body += f"        if gains[{i}] > 0:\n            self.count += {i}\n"
    with monkeypatch.context() as patched:
        patched.setattr(arithmetic, "operate", counted)
        patched.setattr(entries, "SPREAD_FLOOR", 0)
        assert not analysis(body).too_complex
    return times


def test_what_one_of_many_values_is_added_to_costs_a_sum_and_not_a_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = _turns_of(20, monkeypatch), _turns_of(40, monkeypatch)
    assert 20 < few < many <= 2 * few


def test_a_value_that_is_one_of_many_in_turn_spends_the_work_of_its_entry() -> None:
    source = parse("case.py", b"")
    assert isinstance(source, Source)
    vm = Interpreter(Program(Findings("case.py", []), source.tree, None, {}), HANDLERS, 3)
    either = Alt(((ALWAYS, TRUE), (ALWAYS, FALSE)))
    vm.forks.each(either, lambda one: one)
    with pytest.raises(TooComplexError):
        vm.forks.each(either, lambda one: one)


def test_the_memory_that_a_test_is_about_is_noted_once_however_many_tests_lead_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tested.Tested] = []
    begin = tested.Tested.__init__

    def noting(self: tested.Tested, trail: Trail, before: tested.Tested | None) -> None:
        begin(self, trail, before)
        made.append(self)

    monkeypatch.setattr(tested.Tested, "__init__", noting)
    tests = "".join(f"if x > {turn}:\n    x = blur(x)\n" for turn in range(12))
    analysis(
        f"from elsewhere import blur\nx = blur(torch.ones(3, requires_grad=True))\n{tests}x.backward()\n"
    )
    held = [about for one in made for about in one.about.values()]
    assert held and all(len(about) == len(set(map(id, about))) for about in held)


def _gathered_of(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a module is looked into, where so many others may be it and so many calls may clear it."""
    times = 0
    gather = modules._gather

    def counted(machine: Machine, value: Value, seen: set[int], found: dict[int, Tensor]) -> bool:
        nonlocal times
        times += 1
        return gather(machine, value, seen, found)

    body = "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1))\n"
    body += "net(torch.ones(2, 3)).sum().backward()\n"
    for i in range(count):
        body += f"m{i} = prepare(net)\nopt{i} = torch.optim.SGD(m{i}.parameters(), 0.1)\n"
    body += "".join(f"show(net, {i})\n" for i in range(count))
    with monkeypatch.context() as patched:
        patched.setattr(modules, "_gather", counted)
        assert not analysis(body).too_complex
    return times


def test_the_parameters_of_modules_that_nobody_writes_are_gathered_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = _gathered_of(20, monkeypatch), _gathered_of(40, monkeypatch)
    assert 20 < few < many <= 2.2 * few
