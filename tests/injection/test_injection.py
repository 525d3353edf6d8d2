"""Healthy programs with one bug put in: gradfix gives the original back, and breaks none."""

from __future__ import annotations

import pytest

from injection.bugs import BUGS, inject
from injection.survey import Judged, restored, survey, table, torch_process

FLOORS = {
    "zero_grad deleted": 0.86,
    "zero_grad after backward": 0.97,
    "step before the second backward": 0.95,
    "prediction detached": 0.945,
    "reduction dropped": 0.95,
    "forward in no_grad": 0.97,
    "rebuilt from item": 0.99,
    "written in place": 0.94,
}
"""The share of the bugs that make a program fail and are given back, for each kind. In programs whose model
and optimizer are arguments of a function that nobody calls by name, some can't be told from what is meant."""
ALL = 0.965
EVERY = 2
"""Into which of the healthy programs bugs are put here; `python -m tests.injection.survey` takes them all."""

HEALTHY = """import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(2, 4, 3):
    opt.zero_grad()
    out = net(x)
    h = out.sigmoid()
    h = h + 1
    loss = (h - out).pow(2).mean()
    loss.backward()
    loss.sum().backward()
    opt.step()
"""
INJECTED = [
    ("zero_grad deleted", "    opt.zero_grad()\n", ""),
    ("step before the second backward", "    loss.sum().backward()\n    opt.step()\n",
     "    opt.step()\n    loss.sum().backward()\n"),
    ("prediction detached", "h - out)", "h - out.detach())"),
    ("prediction detached", "out = net(x)", "out = net(x).detach()"),
    ("reduction dropped", ".pow(2).mean()", ".pow(2)"),
    ("forward in no_grad", "    loss = (h", "    with torch.no_grad():\n        loss = (h"),
    ("rebuilt from item", "    loss.backward()\n",
     "    loss = torch.tensor(loss.item(), requires_grad=True)\n    loss.backward()\n"),
    ("written in place", "h = h + 1", "h += 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("bug", "healthy", "broken"),
    [pytest.param(*each, id=f"{each[0]}: {each[2].strip() or 'gone'}") for each in INJECTED],
)
def test_a_bug_is_put_in_where_it_fits(bug: str, healthy: str, broken: str) -> None:
    assert HEALTHY.replace(healthy, broken) in [each.text for each in inject(bug, HEALTHY)]


def test_a_zero_grad_lands_between_a_backward_and_its_step() -> None:
    once = HEALTHY.replace("    loss.sum().backward()\n", "")
    (moved,) = inject("zero_grad after backward", once)
    assert moved.text.endswith("    loss.backward()\n    opt.zero_grad()\n    opt.step()\n")


@pytest.mark.parametrize("bug", BUGS)
def test_a_program_without_training_has_no_room_for_a_bug(bug: str) -> None:
    assert list(inject(bug, "import torch\nx = torch.ones(3)\nprint(x)\n")) == []


@pytest.mark.torch
def test_gradfix_gives_the_originals_back_and_breaks_none() -> None:
    with torch_process() as ask:
        judged = survey(ask, every=EVERY)
    shares = {bug: restored([each for each in judged if each.injected.bug == bug]) for bug in BUGS}
    assert [told(each) for each in judged if each.fate == "broken"] == []
    assert {bug: share for bug, share in shares.items() if share < FLOORS[bug]} == {}, table(judged)
    assert restored(judged) >= ALL, table(judged)


def told(judged: Judged) -> str:
    """Which program it is, for the message of a failing test."""
    return f"{judged.path.parent.name}: {judged.injected.bug} in line {judged.injected.line}: {judged.left}"
