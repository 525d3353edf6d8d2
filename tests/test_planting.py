"""The oracle refuses a tape that was tampered with: a finding dropped, a culprit moved, a word not said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from oracle.campaign import warm
from oracle.compare import compare
from oracle.comparison import Analyser
from oracle.planting import planted
from oracle.programs import Program
from oracle.tape import tape

from gradfix.defects import Defect, Span

pytestmark = pytest.mark.torch

Tamper = Callable[[str, tuple[Defect, ...]], Iterable[Defect]]

TWO_WRITES = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
z = x.sigmoid()
z *= 2
z.sum().backward()
"""
WRITTEN_TWICE = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y *= 2
y.sum().backward()
"""
TWO_CUTS = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp().detach()
y.sum().backward()
z = x.sigmoid().detach()
z.sum().backward()
"""
WRITE_AND_LEAF = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
x += 1
"""
WRITE_AND_CUT = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
z = x.sigmoid().detach()
z.sum().backward()
"""
STALE = """import torch
w = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(w.parameters(), lr=0.1)
for i in range(2):
    out = w(torch.ones(4))
    out.sum().backward()
    opt.step()
"""
ERASED = STALE.replace("    opt.step()", "    opt.zero_grad()\n    opt.step()")
CUT = """import torch
x = torch.ones(3, requires_grad=True)
a = x.exp()
b = a.detach()
c = b * 2
c.sum().backward()
"""
WRITE = """import torch
x = torch.ones(3, requires_grad=True)
a = x * 2
y = a.exp()
y += 1
z = y * 3
z.sum().backward()
"""
MODULE = """import torch
from torch import nn
first = nn.Linear(3, 3)
gate = nn.Sigmoid()
act = nn.ReLU(inplace=True)
act(gate(first(torch.ones(2, 3)))).sum().backward()
"""
HIDDEN = WRITE.replace("y += 1", "y.data += 1")
TWICE = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.sum().backward()
z = (y * 2).sum()
z.backward()
"""
CONVERTED_TERM = """import torch
x = torch.ones(3, requires_grad=True)
loss = x.sum() + x.exp().sum().item()
loss.backward()
"""
DETACHED_TERM = """import torch
from torch import nn
one, two = nn.Linear(3, 1), nn.Linear(3, 1)
opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1)
for turn in range(2):
    opt.zero_grad()
    loss = one(torch.ones(2, 3)).mean() + two(torch.ones(2, 3)).mean().detach()
    loss.backward()
    opt.step()
"""
NEVER_TRAINED = """import torch
from torch import nn
net, head = nn.Linear(3, 3), nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn in range(2):
    opt.zero_grad()
    hidden = net(torch.ones(2, 3)).detach()
    head(hidden).mean().backward()
    opt.step()
"""
NO_GRADIENT = """import torch
x = torch.ones(3, requires_grad=True) * 2
(x * x).sum().backward()
x.data -= 0.1 * x.grad
"""
MANY_FLAGS = (
    "import os, sys\nimport torch\nflag0 = len(sys.argv) > 5\n"
    "flag1 = bool(os.environ.get('GRADFIX_ORACLE'))\nflag2 = '--fast' in sys.argv\n"
    + "".join(f"flag{n} = 'GRADFIX_ORACLE{n}' in os.environ\n" for n in range(3, 10))
    + "x = torch.ones(3, requires_grad=True)\ny = x.exp()\n"
    + "".join(f"if flag{n}:\n    y = y + {n}\n" for n in range(9))
    + "y = y.sigmoid()\nif flag9:\n    y += 1\ny.sum().backward()\n"
)
FORWARD = """import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        h = x.exp()
        h += 1
        return h
"""
CALLED = "net = Net()\nnet(torch.randn(3, 4, requires_grad=True) * 1).sum().backward()\n"
UNKNOWN = """import torch
from mystery import blur
x = torch.ones(3, 4, requires_grad=True)
seen = blur(torch.ones(3))
y = x.exp()
y += 1
y.sum().backward()
"""


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Not while tests are collected: of several processes that do so, one runs them."""
    warm()


def silent(source: str, said: tuple[Defect, ...]) -> Iterable[Defect]:
    """Nothing at all."""
    return ()


def second_dropped(source: str, said: tuple[Defect, ...]) -> Iterable[Defect]:
    """All but the last finding."""
    return said[:-1]


def moved_to(line: int) -> Tamper:
    """Every culprit on an innocent line; the evidence as it was."""

    def tamper(source: str, said: tuple[Defect, ...]) -> Iterable[Defect]:
        text = source.split("\n")[line - 1]
        start = len(text) - len(text.lstrip())
        return [replace(one, culprit=Span(line, start, line, len(text))) for one in said]

    return tamper


def tampered(tamper: Tamper) -> Analyser:
    return lambda source: tuple(tamper(source, tape(source)))


def disagreements(written: Program, analyse: Analyser) -> list[str]:
    result = compare(written, analyse)
    assert result is not None
    return [each.group for each in result.disagreements]


PLANTED = [
    pytest.param(Program(TWO_WRITES), second_dropped, id="one of two overwritten values"),
    pytest.param(Program(WRITTEN_TWICE), second_dropped, id="one of two writes to one value"),
    pytest.param(Program(TWO_CUTS), second_dropped, id="one of two losses that were cut off"),
    pytest.param(Program(WRITE_AND_LEAF), second_dropped, id="a leaf written behind another failure"),
    pytest.param(Program(WRITE_AND_CUT), second_dropped, id="a loss cut off behind another failure"),
    pytest.param(Program(WRITE), moved_to(6), id="an innocent line that overwrites"),
    pytest.param(Program(WRITE), moved_to(3), id="a line before the one that saves"),
    pytest.param(Program(HIDDEN), moved_to(6), id="an innocent line that writes through data"),
    pytest.param(Program(MODULE), moved_to(4), id="an innocent module"),
    pytest.param(Program(CUT), moved_to(3), id="an innocent line that cuts"),
    pytest.param(Program(STALE), moved_to(5), id="an innocent line that adds to a stale gradient"),
    pytest.param(Program(ERASED), moved_to(6), id="an innocent line that clears"),
    pytest.param(Program(TWICE), moved_to(5), id="an innocent line that frees a graph"),
    pytest.param(Program(CONVERTED_TERM), silent, id="silence on a term that became a number"),
    pytest.param(Program(DETACHED_TERM), silent, id="silence on a term that alone trains something"),
    pytest.param(Program(NEVER_TRAINED), silent, id="silence on a net that never trains"),
    pytest.param(Program(NO_GRADIENT), silent, id="silence on a gradient that is None"),
    pytest.param(Program(MANY_FLAGS, 10), silent, id="silence behind ten flags"),
    pytest.param(Program(FORWARD, driver=CALLED), silent, id="silence on a file that only defines"),
    pytest.param(Program(UNKNOWN, opaque=True), silent, id="silence beside an unknown callee"),
]


@pytest.mark.parametrize(("written", "tamper"), PLANTED)
def test_a_tape_that_was_tampered_with_is_refused(written: Program, tamper: Tamper) -> None:
    assert disagreements(written, tampered(tamper)) != []


@pytest.mark.parametrize("written", [pytest.param(p.values[0], id=str(p.id)) for p in PLANTED])
def test_the_tape_as_it_is_passes(written: Program) -> None:
    assert disagreements(written, tape) == []


def test_hardly_a_finding_of_a_random_program_can_be_dropped_or_moved() -> None:
    counts = planted(0, 120, tape)
    for name in ("dropped", "moved"):
        told = {word: sum(n for (way, _, end), n in counts.items() if (way, end) == (name, word))
                for word in ("refused", "passed")}  # fmt: skip
        assert told["refused"] > 30
        assert told["passed"] < 0.15 * told["refused"], counts
