"""A graph for every turn of a loop: what moves in, what stays, and what is left to the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding

NET = """import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 3)
"""
TRAINS = """    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BUILT = "loss = net(x).pow(2).mean()\n"
LOOP = "for step in range(3):\n"
TOTAL = """total = 0
for x in torch.ones(3, 2, 3):
    loss = net(x).pow(2).mean()
{added}
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
"""


def found(text: str) -> Finding:
    """The finding of the graph that is walked again."""
    outcome = fix("program.py", (NET + text).encode(), Plan(Config(Path())))
    return next(one for one in outcome.findings if one.code == "GF302")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            BUILT + "for x in torch.ones(3, 2, 3):\n" + TRAINS, id="the loop binds what the loss is made of"
        ),
        pytest.param(BUILT + "while loss > 0.1:\n" + TRAINS, id="the loop's own test asks for the loss"),
        pytest.param(BUILT + "torch.manual_seed(0)\n" + LOOP + TRAINS, id="something runs between"),
        pytest.param(
            "if x.sum() > 0:\n    out = net(x)\nloss = out.pow(2).mean()\n" + LOOP + TRAINS,
            id="a part of it is built under a condition",
        ),
        pytest.param(TOTAL.format(added="    total += 2 * loss"), id="not the loss itself is added"),
        pytest.param(
            TOTAL.format(added="    total += loss\n    total += net(x).mean()"), id="two things are added"
        ),
    ],
)
def test_what_can_not_move_whole_is_left_to_the_user(text: str) -> None:
    assert found(text).safety is None


def test_what_builds_the_loss_moves_in_and_keeps_every_value_of_the_first_turn() -> None:
    one = found(BUILT + LOOP + TRAINS)
    assert (one.says, one.unsafe) == ("inside the loop: loss = net(x).pow(2).mean()", "")


def test_a_loss_that_is_read_behind_the_loop_becomes_the_last_turns() -> None:
    one = found(BUILT + LOOP + TRAINS + "print(loss.item())\n")
    assert one.unsafe == "what is read behind the loop is then the last turn's"


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.dropout(net(x)).mean()",
        "nn.Dropout(0.1)(net(x)).mean()",
        "net(nn.functional.dropout(x)).mean()",
        "(net(x) * torch.rand(2, 1)).mean()",
    ],
)
def test_a_loss_that_draws_random_numbers_moves_unsafely(loss: str) -> None:
    assert (
        found(f"loss = {loss}\n" + LOOP + TRAINS).unsafe == "each turn then draws random numbers of its own"
    )


def test_what_was_drawn_before_is_not_drawn_again() -> None:
    one = found("x = torch.rand(2, 3)\n" + BUILT + LOOP + TRAINS)
    assert (one.says, one.unsafe) == ("inside the loop: loss = net(x).pow(2).mean()", "")


@pytest.mark.parametrize("added", ["    total += loss", "    total = total + loss"])
def test_a_total_gets_the_value_and_the_loss_is_backpropagated(added: str) -> None:
    one = found(TOTAL.format(added=added))
    assert one.says == "total += loss.detach(); loss.backward()"
    assert one.unsafe.startswith("each turn learns from its own loss")


MODULE = """class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(3, 1)
        self.scale = nn.Parameter(torch.ones(1))
{made}
    def forward(self, x):
        return self.linear(x) * self.gain
{beside}
net = Net(1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(3, 2, 3):
    loss = net(x).pow(2).mean()
"""
GAIN = "        self.gain = self.scale.exp()\n"


@pytest.mark.parametrize(
    ("made", "beside", "unsafe"),
    [
        pytest.param("        self.gain = (self.scale * size).exp()\n", "", None, id="an argument goes in"),
        pytest.param(
            GAIN, "\n    def shown(self):\n        return self.gain.item()\n", None, id="two methods read it"
        ),
        pytest.param(GAIN + "        self.first = self.gain.item()\n", "", None, id="read at once"),
        pytest.param(
            "        self.gain = F.dropout(self.scale.exp())\n", "", "draws random numbers", id="it draws"
        ),
        pytest.param(
            GAIN + "        nn.init.zeros_(self.scale)\n", "", "may have changed", id="written afterwards"
        ),
        pytest.param(GAIN, "", "", id="nothing else looks at it"),
    ],
)  # fmt: skip
def test_what_a_constructor_computes_moves_where_one_method_reads_it(
    made: str, beside: str, unsafe: str | None
) -> None:
    head = "import torch.nn.functional as F\n"
    one = found(head + MODULE.format(made=made, beside=beside) + TRAINS)
    if unsafe is None:
        assert one.safety is None
    else:
        assert one.says.startswith("in forward: self.gain = ")
        assert (unsafe in one.unsafe) if unsafe else not one.unsafe


@pytest.mark.parametrize(
    ("made", "unsafe"),
    [
        pytest.param("        self.gain = self.scale.pow(2)\n", "", id="it draws nothing"),
        pytest.param(
            "        self.gain = F.dropout(self.scale.pow(2))\n", "draws random numbers", id="it draws"
        ),
    ],
)
def test_what_a_constructor_computes_is_not_kept_by_its_graph(made: str, unsafe: str) -> None:
    head = "import torch.nn.functional as F\n"
    kept = TRAINS.replace("loss.backward()", "loss.backward(retain_graph=True)")
    text = NET + head + MODULE.format(made=made, beside="") + kept
    (one,) = fix("program.py", text.encode(), Plan(Config(Path()))).findings
    assert one.code == "GF105"
    assert (unsafe in one.unsafe) if unsafe else not one.unsafe
    after = fix("program.py", text.encode(), Plan(Config(Path(), unsafe_fixes=True))).after or b""
    assert b"    loss.backward()\n" in after


def test_a_message_names_what_a_function_runs_backward_on() -> None:
    text = NET + "loss = net(x).pow(2)\nprint(torch.autograd.grad(loss, net.parameters()))\n"
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    assert [one.message for one in outcome.findings] == [
        "`loss` has more than one element, so backward needs a reduction or a gradient"
    ]


def test_a_clearing_is_written_as_the_others_of_its_file_are() -> None:
    other = "def tune(optimizer):\n    optimizer.zero_grad(set_to_none=True)\n"
    loop = "for x in torch.ones(3, 2, 3):\n    net(x).mean().backward()\n    optimizer.step()\n"
    outcome = fix("program.py", (NET + other + loop).encode(), Plan(Config(Path())))
    assert outcome.after is not None
    assert b"    optimizer.zero_grad(set_to_none=True)\n    net(x).mean().backward()\n" in outcome.after


def test_a_total_that_loses_its_graphs_has_none_to_put_by() -> None:
    text = """totals = []
for epoch in range(3):
    total = 0
    for x in torch.ones(3, 2, 3):
        loss = net(x).pow(2).mean()
        total += loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    totals.append(total / 3)
"""
    outcome = fix("program.py", (NET + text).encode(), Plan(Config(Path())))
    assert [one.says for one in outcome.findings] == ["loss.detach()"]


def test_a_loss_that_is_read_as_a_number_is_reduced_where_the_backward_gets_it() -> None:
    text = """for x in torch.ones(3, 2, 3):
    loss = net(x).pow(2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
loss = torch.zeros(())
"""
    outcome = fix("program.py", (NET + text).encode(), Plan(Config(Path())))
    assert outcome.after is not None and b"    loss = net(x).pow(2).sum()\n" in outcome.after


def test_a_total_whose_loss_is_cut_off_is_wanted() -> None:
    text = """total = 0
for x in torch.ones(3, 2, 3):
    loss = net(x).pow(2).mean()
    total += loss
with torch.no_grad():
    mean = total / 3
mean.backward()
"""
    outcome = fix("program.py", (NET + text).encode(), Plan(Config(Path())))
    assert [one.code for one in outcome.findings] == ["GF203"]


def test_a_clearing_before_a_backward_under_a_condition_is_moved_only_if_asked() -> None:
    text = """import sys
for x in torch.ones(3, 2, 3):
    out = net(x)
    if len(sys.argv) > 1:
        out.abs().mean().backward(retain_graph=True)
    out.pow(2).mean().backward()
    optimizer.zero_grad()
    optimizer.step()
"""
    outcome = fix("program.py", (NET + text).encode(), Plan(Config(Path())))
    assert [one.code for one in outcome.findings] == ["GF402"]
    assert outcome.findings[0].says.startswith("optimizer.zero_grad() before if") and outcome.after is None


UNREDUCED = """import torch.nn.functional as F
criterion = nn.MSELoss(reduction="none")
def update(x, y):
    loss = criterion(net(x), y)
    loss.backward()
    {further}
update(torch.ones(2, 3), torch.ones(2, 1))
"""


@pytest.mark.parametrize(
    ("further", "says"),
    [
        pytest.param("return None", "loss.mean().backward()", id="nobody else gets the loss"),
        pytest.param("return loss", 'nn.MSELoss(reduction="mean")', id="the caller gets the loss"),
        pytest.param("print(criterion(net(x), y))", 'nn.MSELoss(reduction="mean")', id="another one is made"),
        pytest.param(
            "return (x * loss).sum(), loss", "loss.mean().backward()", id="its elements are weighed"
        ),
        pytest.param("return criterion(net(x), y)[0]", "loss.mean().backward()", id="one element is chosen"),
    ],
)
def test_a_loss_is_told_to_reduce_where_others_get_it(further: str, says: str) -> None:
    text = NET + UNREDUCED.format(further=further)
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    one = next(one for one in outcome.findings if one.code == "GF301")
    assert one.says == says and bool(one.unsafe) is says.startswith("nn")
