"""What is gone through once, in part or by others: what is left of it is known, or nothing is said."""

from __future__ import annotations

import pytest
from short import analysis, listed

LOSSES = "w = torch.ones(3, requires_grad=True)\nlosses = [(w * i).exp().sum() for i in range(3)]\n"
TWICE = LOSSES + "kept = {}\nfor one in kept:\n    one.backward()\nfor one in kept:\n    one.backward()\n"


@pytest.mark.parametrize(
    ("kept", "again"),
    [
        ("losses", True),
        ("[*losses]", True),
        ("list(iter(losses))", True),
        ("iter(losses)", False),
        ("reversed(losses)", False),
        ("map(abs, losses)", False),
        ("(one * 1 for one in losses)", False),
    ],
)
def test_a_list_is_gone_through_again_and_an_iterator_is_not(kept: str, again: bool) -> None:
    assert ("backward_twice" in listed(TWICE.format(kept))) is again


FROZEN = """
import sys
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
some = [p for p in net.parameters() if {test}]
for p in {copy}:
    p.requires_grad = False
net(torch.ones(1, 2)).sum().backward()
"""
COPIES = ["some", "sorted(some, key=id)", "list(some)", "some + []", "some[:]", "some.copy()", "[*some]"]


@pytest.mark.parametrize("copy", COPIES)
def test_what_a_test_lets_through_may_be_few_in_each_copy(copy: str) -> None:
    assert listed(FROZEN.format(test="hash(p) % 2", copy=copy)) == set()
    assert listed(FROZEN.format(test="True", copy=copy)) == {"no_leaf_requires_grad"}


REMEMBERS = """
from elsewhere import reset_net, Trainer
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.h = nn.GRUCell(4, 4), None
    def forward(self, x):
        self.h = self.cell(x, self.h)
        return self.h
    def reset(self):
        self.h = None
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Cell(), Cell()
    def forward(self, x):
        return self.second(self.first(x))
net = Net()
trainer = Trainer(net)
for i in range(3):
    {}
    net(torch.randn(1, 4)).sum().backward()
"""
RESETS = [
    "reset_net(net)",
    "trainer.reset()",
    "for m in net.modules():\n        if hasattr(m, 'reset'): m.reset()",
    "for n, m in net.named_modules():\n        if isinstance(m, Cell): m.reset()",
    "for m in net.children(): m.reset()",
]


@pytest.mark.parametrize("reset", RESETS)
def test_who_has_an_object_may_let_it_forget_what_it_has_computed(reset: str) -> None:
    assert listed(REMEMBERS.format(reset)) == set()


@pytest.mark.parametrize("reset", ["pass", "print(net)", "net.train()"])
def test_what_nobody_resets_is_kept(reset: str) -> None:
    assert "backward_twice" in listed(REMEMBERS.format(reset))


COUNTED = """
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=.1)
for i in range(8):
    {clear}
    net(torch.randn(2, 4)).pow(2).mean().backward()
    if i % 2 == 1:
        opt.step()
"""
CLEARS = ["if i % 2 == 0: opt.zero_grad()", "i % 2 == 0 and opt.zero_grad()", "i % 2 or opt.zero_grad()",
          "opt.zero_grad() if i % 2 == 0 else None"]  # fmt: skip


@pytest.mark.parametrize("clear", CLEARS)
def test_turns_that_are_passed_over_may_have_cleared(clear: str) -> None:
    assert listed(COUNTED.format(clear=clear)) == set()


def test_what_no_turn_clears_adds_up() -> None:
    assert listed(COUNTED.format(clear="pass")) == {"missing_zero_grad"}


STEPS = """
net = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2))
opt = torch.optim.SGD(net.parameters(), lr=.1)
{}
for i in range(3):
    net(torch.randn(3, 4)).sum().backward()
    opt.step()
"""
OWN = "old = opt.step\ndef new():\n    old()\n    {}\nopt.step = new"


def test_a_step_of_its_own_is_called_in_the_place_of_the_method() -> None:
    assert listed(STEPS.format(OWN.format("opt.zero_grad()"))) == set()
    assert listed(STEPS.format(OWN.format("pass"))) == {"missing_zero_grad"}


GROUPS = [
    "opt.param_groups[0]['params'] = [*net.parameters()]",
    "opt.param_groups[0].update(params=[*net.parameters()])",
    "opt.param_groups = [{'params': [*net.parameters()], 'lr': 0.1}]",
    "for group in opt.param_groups: group['params'] = [*net.parameters()]",
]


@pytest.mark.parametrize("group", GROUPS)
def test_groups_that_are_filled_anew_may_hold_what_was_put_in_place_of_a_layer(group: str) -> None:
    cleared = STEPS.replace("for i in range(3):", "for i in range(3):\n    opt.zero_grad()")
    assert listed(cleared.format("net[1] = nn.Linear(2, 3)")) == {"optimizer_before_replacement"}
    assert listed(cleared.format(f"net[1] = nn.Linear(2, 3)\n{group}")) == set()


SPLIT = (
    LOSSES
    + """
one = [each for each in losses if {}]
other = [each for each in losses if {}]
for each in one:
    each.backward()
for each in other:
    each.backward()
"""
)


def test_what_one_test_lets_through_another_may_hold_back() -> None:
    assert listed(SPLIT.format("each > 1", "each <= 1")) == set()
    assert listed(SPLIT.format("True", "each <= 1")) == {"backward_twice"}


BATCHES = """
net = nn.Linear(4, 1)
{}
def batches():
    for _ in range(3):
        {}
            yield torch.randn(2, 4)
for x in batches():
    net(x).mean().backward()
"""


def test_a_mode_around_a_generator_holds_in_it_alone() -> None:
    assert listed(BATCHES.format("@torch.no_grad()", "if True:")) == set()
    assert listed(BATCHES.format("", "with torch.no_grad():")) == {"forward_in_no_grad"}


PERHAPS_NONE = """
def train(net, rows):
    loss = torch.zeros(1, requires_grad=True)
    for row in {}:
        loss = nn.Linear(3, 4)(row).sum().detach()
    loss.backward()
"""


def test_what_a_loop_has_bound_anew_is_there_if_it_has_run() -> None:
    def said(rows: str) -> list[str]:
        return [one.certainty for one in analysis(PERHAPS_NONE.format(rows)).defects]

    assert said("rows") == ["likely"]
    assert said("torch.randn(4, 2, 3)") == ["certain"]


ROW = """
policy = nn.Linear(4, 4)
for k in range(3):
    row = [torch.randn(4), torch.randn(4), 1.0, {}, torch.randn(4)]
    obs, a, r, chosen, new = [x for x in row]
    chosen.backward()
"""


def test_what_a_later_turn_leaves_out_of_a_list_keeps_its_place() -> None:
    assert listed(ROW.format("policy(torch.randn(4)).sum()")) == set()
    assert listed(ROW.format("torch.randn(1).sum()")) == {"no_leaf_requires_grad"}
