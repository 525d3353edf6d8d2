"""A backward that went through has shown that what it walked had a graph, whoever made it."""

from __future__ import annotations

from typing import Any

import pytest
from short import analysis, kinds, listed, whole

from gradfix.defects.records import Kept

LEAK = "graph_leak"
GIVEN = """
def train(model, criterion, optimizer, loader):
    {begin}
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        {before}
        loss.backward()
        optimizer.step()
        {after}
    return total
"""
NOTHING = "pass"
KEPT = {
    "added after the backward": ("total = 0.0", NOTHING, "total += loss"),
    "added before the backward": ("total = 0", "total += loss", NOTHING),
    "weighed and added": ("total = 0.0", NOTHING, "total += loss * 0.5"),
    "what was divided for the backward": ("total = 0.0", "whole = loss; loss = loss / 2", "total += whole"),
    "put into a list": ("total = []", NOTHING, "total.append(loss)"),
    "added to an entry": ("total = {'loss': 0.0}", NOTHING, "total['loss'] += loss"),
    "added to an element": ("total = [0.0, 0.0]", NOTHING, "total[1] += loss"),
}
LET_GO = {
    "detached": ("total = 0.0", NOTHING, "total += loss.detach()"),
    "a number": ("total = 0.0", NOTHING, "total += loss.item()"),
    "not recorded": ("total = 0.0", NOTHING, "with torch.no_grad(): total += loss"),
    "detached in place": ("total = 0.0", "shown = loss", "loss.detach_(); total += loss"),
    "bound anew": ("total = 0.0", NOTHING, "loss = float(loss); total += loss"),
    "begun in each turn": (
        "total = 0.0",
        "log = {'loss': 0.0}",
        "log['loss'] += loss; total += log['loss'].item()",
    ),
    "put into a list of this turn": ("total = 0.0", "log = []", "log.append(loss); total += log[0].item()"),
    "of this turn only": ("total = 0.0", NOTHING, "total = 0.0 + loss"),
    "kept, not added": ("total = {}", NOTHING, "total['loss'] = loss"),
}
MADE = """
model, criterion = nn.Linear(3, 1), nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = train(model, criterion, optimizer, [(torch.randn(4, 3), torch.rand(4, 1)) for _ in range(3)])
"""


def program(lines: tuple[str, str, str]) -> str:
    begin, before, after = lines
    return GIVEN.format(begin=begin, before=before, after=after)


@pytest.mark.parametrize("lines", KEPT.values(), ids=KEPT.keys())
def test_a_graph_that_is_kept(lines: tuple[str, str, str]) -> None:
    found = [one for one in analysis(program(lines)).defects if one.kind == LEAK]
    assert len(found) == 1
    assert found[0].certainty == "likely"


@pytest.mark.parametrize("lines", LET_GO.values(), ids=LET_GO.keys())
def test_a_graph_that_is_let_go(lines: tuple[str, str, str]) -> None:
    assert LEAK not in kinds(program(lines))


@pytest.mark.torch
@pytest.mark.parametrize("lines", KEPT.values(), ids=KEPT.keys())
def test_torch_keeps_it(lines: tuple[str, str, str]) -> None:
    assert depth(played(lines)) > 2


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("lines", LET_GO.values(), ids=LET_GO.keys())
def test_torch_lets_it_go(lines: tuple[str, str, str]) -> None:
    assert depth(played(lines)) < 2


def played(lines: tuple[str, str, str]) -> Any:
    pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(compile(whole(program(lines)) + MADE, "case.py", "exec"), space)
    return space["total"]


def depth(total: Any) -> int:
    """How many backward nodes of mean squared errors a total keeps."""
    held = total.values() if isinstance(total, dict) else total if isinstance(total, list) else [total]
    stack = [one.grad_fn for one in held if getattr(one, "grad_fn", None) is not None]
    seen: set[Any] = set()
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(one for one, _ in node.next_functions)
    return sum(type(node).__name__ == "MseLossBackward0" for node in seen)


ONLY_SOMETIMES = """
def train(model, criterion, loader, learns):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        {add}
        if learns:
            {backward}
    return total
"""


@pytest.mark.parametrize(
    "lines",
    [
        {"add": "total += loss", "backward": "loss.backward()"},
        {"add": "pass", "backward": "loss.backward(retain_graph=True); total += loss"},
        {"add": "pass", "backward": "(loss + model.penalty()).backward(); total += loss"},
    ],
    ids=["on some paths", "the graph stays", "another term may have had the graph"],
)
def test_what_no_backward_has_shown(lines: dict[str, str]) -> None:
    assert LEAK not in kinds(ONLY_SOMETIMES.format(**lines))


METER = """
class Meter:
    def __init__(self):
        self.sum, self.seen = 0.0, []

    def update(self, value):
        self.sum += {added}

class Runner:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.meter = Meter()

    def run(self, batches):
        for x in batches:
            {meter}
            loss = self.model(x).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.meter.update(loss)
            print(self.meter.sum)
"""


@pytest.mark.parametrize(
    ("added", "meter", "said"),
    [
        ("value", "pass", True),
        ("value.detach()", "pass", False),
        ("value.item()", "pass", False),
        ("value", "self.meter = Meter()", False),
    ],
    ids=["it grows", "it is detached", "it is a number", "it is new in each turn"],
)
def test_the_total_of_an_object(added: str, meter: str, said: bool) -> None:
    assert (LEAK in kinds(METER.format(added=added, meter=meter))) is said


STEPPED = """
def train(model, optimizer, loader):
    for x in loader:
        {begin}
        turn = 0
        {turns}:
            turn += 1
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            {after}
model = nn.Linear(3, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1), blur())
"""


@pytest.mark.parametrize(
    ("begin", "after"), [("total = 0.0", "total += loss"), ("total = []", "total.append(loss)")]
)
@pytest.mark.parametrize(
    ("turns", "told"),
    [
        ("for _ in range(5)", set()),
        ("for _ in range(100)", {LEAK}),
        ("for _ in range(x.n)", {LEAK}),
        ("while turn < 5", set()),
        ("while turn < 100", {LEAK}),
        ("while turn < x.n", {LEAK}),
    ],
)
def test_what_few_turns_add_up_to_is_small_where_it_begins_anew(
    begin: str, after: str, turns: str, told: set[str]
) -> None:
    assert kinds(STEPPED.format(begin=begin, after=after, turns=turns)) == told


NOW_AND_THEN = """
def turn(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss
def train(model, optimizer, loader):
    total, number = 0.0, 0
    while number < blur():
        if number > blur():
            print(total)
            {again}
        total += turn(model, optimizer, loader.draw())
        number += 1
model = nn.Linear(3, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1), blur())
"""


@pytest.mark.parametrize("again", ["pass", "total = 0.0"])
def test_a_total_that_begins_anew_now_and_then_grows_in_between(again: str) -> None:
    assert kinds(NOW_AND_THEN.format(again=again)) == {LEAK}


SHORT = """
model = nn.Linear(3, 1)
total = {begin}
for turn in range(2):
    loss = model(torch.ones(4, 3)).pow(2).mean()
    loss.backward()
    {test}:
        total {after}
    model.zero_grad()
"""


@pytest.mark.parametrize(("begin", "after"), [("0.0", "+= loss"), ("[]", ".append(loss)")])
@pytest.mark.parametrize(("test", "told"), [("if True", {LEAK}), ("if blur(turn)", set())])
def test_what_is_kept_in_some_of_few_turns_may_be_kept_in_one(
    begin: str, after: str, test: str, told: set[str]
) -> None:
    assert kinds(SHORT.format(begin=begin, after=after, test=test)) == told


LOGGED = """
def train(loader, model, ewc):
    log = {{"loss": 0.0}}
    for x, y in loader:
        ewc.optimizer.zero_grad()
        loss = {loss}
        kept = {kept}
        loss.backward()
        ewc.optimizer.step()
        log["loss"] += {added}
    return log
"""
MADE_NUMBERS = {
    "what torch says is none": "loss.item() if torch.is_tensor(loss) else loss",
    "what Python says is none": "loss.item() if isinstance(loss, torch.Tensor) else loss",
    "what is a number": "loss if isinstance(loss, float) else loss.item()",
    "what has no item": "loss.item() if hasattr(loss, 'item') else loss",
}


@pytest.mark.parametrize("loss", ["ewc.criterion(model(x), y)", "ewc.criterion(model(x), y) + ewc.penalty()"])
@pytest.mark.parametrize("kept", MADE_NUMBERS.values(), ids=MADE_NUMBERS.keys())
def test_what_is_backpropagated_is_a_tensor_whatever_a_test_asks(loss: str, kept: str) -> None:
    for added in ("kept", kept):
        assert listed(LOGGED.format(loss=loss, kept=kept, added=added)) == set()
    assert listed(LOGGED.format(loss=loss, kept=kept, added="loss")) == {"graph_leak"}


def test_what_is_a_number_on_another_path_has_nothing_to_detach() -> None:
    body = """
    net, log = nn.Linear(3, 1), {{"loss": 0.0}}
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        opt.zero_grad()
        loss = net(x).mean()
        loss.backward()
        opt.step()
        log["loss"] += {added}
    """
    for added, number in (("loss.item() if use else loss", True), ("loss", False)):
        found = analysis(body.format(added=added)).defects
        assert [one.told(Kept).number for one in found if one.kind == "graph_leak"] == [number]


def test_a_total_that_is_backpropagated_itself_is_no_souvenir() -> None:
    body = """
    w = torch.rand(3, 4).requires_grad_()
    total = torch.sum({of})
    total.backward(retain_graph=True)
    for k in range(3):
        total += total
    total.backward()
    """
    assert listed(body.format(of="w")) == listed(body.format(of="unknown(w)")) == set()
