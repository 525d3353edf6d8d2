"""The turns of a loop that are run: the last one is among them, and nobody comes back from a way out."""

from __future__ import annotations

import pytest
from short import kinds, whole

SAVED = "inplace_overwrites_saved"
BUILT = """
class Net(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        sizes, layers = [4] * (n + 1), []
        for {turns}:
            layers.append(nn.Linear(4, 4))
            if {test}:
                layers.append(nn.Sigmoid())
        self.body = nn.Sequential(*layers)
    def forward(self, x):
        x = self.body(x)
        x += 1
        return x
Net()(torch.ones(2, 4)).sum().backward()
"""
NOT_LAST = {
    "a range of a number, not the last number": ("i in range(8)", "i != 7"),
    "a range of a number, less than the last": ("i in range(8)", "i < 8 - 1"),
    "a range of an argument, not its last": ("i in range(n)", "i != n - 1"),
    "a range of an argument, the next one is less": ("i in range(n)", "i + 1 < n"),
    "a range that begins at one": ("i in range(1, n)", "i != n - 1"),
    "a range of how many there are": ("i in range(len(sizes) - 1)", "i < len(sizes) - 2"),
    "numbered": ("i, size in enumerate(sizes)", "i != len(sizes) - 1"),
    "a range, numbered": ("i, _ in enumerate(range(n))", "not i == n - 1"),
}
EACH = {
    "the first as well": ("i in range(8)", "i >= 0"),
    "the last as well": ("i in range(8)", "i > 3"),
    "the last alone": ("i in range(n)", "i == n - 1"),
}


@pytest.mark.parametrize("where", ["Net()", "Net(blur())"])
@pytest.mark.parametrize(("turns", "test"), NOT_LAST.values(), ids=NOT_LAST)
def test_what_all_turns_but_the_last_add_isn_t_the_last_of_all(turns: str, test: str, where: str) -> None:
    assert kinds(BUILT.format(turns=turns, test=test).replace("Net()(", f"{where}(")) == set()


@pytest.mark.parametrize(("turns", "test"), EACH.values(), ids=EACH)
def test_what_the_last_turn_adds_is_the_last_of_all(turns: str, test: str) -> None:
    assert kinds(BUILT.format(turns=turns, test=test)) == {SAVED}


@pytest.mark.torch
@pytest.mark.parametrize(("turns", "test"), [*NOT_LAST.values(), *EACH.values()], ids=[*NOT_LAST, *EACH])
def test_torch_says_the_same(turns: str, test: str) -> None:
    pytest.importorskip("torch")
    code = compile(whole(BUILT.format(turns=turns, test=test)), "case.py", "exec")
    if (turns, test) in EACH.values():
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            exec(code, {})
    else:
        exec(code, {})


THAWED = """
net = nn.Linear(3, 1)
net.requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(100):
    if epoch == {when}:
        net.requires_grad_(True)
    loss = net(torch.ones(2, 3)).sum()
    if epoch >= {when}:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("when", [1, 20, 99])
def test_a_turn_that_a_test_picks_out_is_run(when: int) -> None:
    assert kinds(THAWED.format(when=when)) == set()


ENDED = """
import os, sys
from sys import exit as leave
def run(quick, x):
    w = torch.ones(3, requires_grad=True)
    loss = (w * x).exp().sum()
    if quick:
        loss.backward()
        {end}
    loss.backward()
"""


@pytest.mark.parametrize("end", ["exit(0)", "quit()", "sys.exit()", "os._exit(1)", "leave()", "return"])
def test_nothing_comes_after_what_ends_the_program(end: str) -> None:
    assert kinds(ENDED.format(end=end)) == set()
    assert kinds(ENDED.format(end="sys.path.clear()")) == {"backward_twice"}


LEFT = """
def train(loader, quick):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        if quick:
            loss.backward()
            optimizer.step()
            {end}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("end", "told"), [("return", set()), ("raise ValueError", set()), ("continue", {"missing_zero_grad"})]
)
def test_who_has_left_in_one_turn_is_not_there_in_the_next(end: str, told: set[str]) -> None:
    assert kinds(LEFT.format(end=end)) == told
