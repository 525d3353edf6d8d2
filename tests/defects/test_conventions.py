"""What a finding takes for granted is named: defaults that nobody passes, flags, training mode."""

from __future__ import annotations

import textwrap

import pytest

from gradfix.defects import Defect
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def only(body: str, kind: str = "inplace_overwrites_saved") -> Defect:
    source = parse("main.py", (HEAD + textwrap.dedent(body)).encode())
    assert isinstance(source, Source)
    (found,) = (one for one in analyse(source).defects if one.kind == kind)
    return found


MODE = """
class Net(nn.Module):
    def forward(self, x):
        w = torch.ones(3, requires_grad=True)
        y = w.exp()
        {lines}
        y.sum().backward()
"""
FUNCTION = """
def train({argument}):
    w = torch.ones(3, requires_grad=True)
    y = {call}
    y += 1
    y.sum().backward()
"""
TAKEN: dict[str, str] = {
    "a function of torch that is a default": FUNCTION.format(argument="act=torch.exp", call="act(w)"),
    "a function of the file that is a default": (
        "def act(x):\n    return x.exp()\n" + FUNCTION.format(argument="act=act", call="act(w)")
    ),
    "a layer that a default class builds": FUNCTION.format(argument="make=nn.Sigmoid", call="make()(w)"),
    "a default that an object keeps": """
        class Trainer:
            def __init__(self, act=torch.exp):
                self.act = act
            def train(self):
                w = torch.ones(3, requires_grad=True)
                y = self.act(w)
                y += 1
                y.sum().backward()
        """,
    "a test of the training mode": MODE.format(lines="if self.training:\n            y += 1"),
    "the other arm of a test of the training mode": MODE.format(
        lines="if not self.training:\n            return y\n        y += 1"
    ),
    "a dropout of a module that others may switch": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = nn.Dropout(0.5)
            def step(self):
                w = torch.ones(3, requires_grad=True)
                y = self.drop(w.exp() * 2).exp()
                y += 1
                y.sum().backward()
        """,
    "a functional dropout that is told the training mode": """
        class Net(nn.Module):
            def step(self):
                w = torch.ones(3, requires_grad=True)
                y = F.dropout(w * 2, 0.5, self.training).exp()
                y += 1
                y.sum().backward()
        """,
    "a module of the file that a function without callers runs": """
        net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        def step():
            y = net(torch.ones(3)).exp()
            y += 1
            y.sum().backward()
        """,
    "a mode that an argument decides": """
        import sys
        drop = nn.Dropout(0.5)
        drop.train(len(sys.argv) > 1)
        w = torch.ones(3, requires_grad=True)
        y = drop(w * 2).exp()
        y += 1
        y.sum().backward()
        """,
    "a flag of a forward that is off": """
        class Net(nn.Module):
            def forward(self, x, plain=False):
                w = torch.ones(3, requires_grad=True)
                y = w.exp()
                if not plain:
                    y += 1
                y.sum().backward()
        """,
}
KNOWN: dict[str, str] = {
    "a default that is passed": (
        FUNCTION.format(argument="act=torch.sin", call="act(w)") + "\ntrain(torch.exp)\n"
    ),
    "a default that the file itself relies on": (
        FUNCTION.format(argument="act=torch.exp", call="act(w)") + "\ntrain()\n"
    ),
    "a default that the finding has nothing to do with": """
        def train(act=torch.exp):
            w = torch.ones(3, requires_grad=True)
            z = act(w)
            y = w.sigmoid()
            y += 1
            y.sum().backward()
        """,
    "a module that the file builds and runs": """
        drop = nn.Dropout(0.5)
        w = torch.ones(3, requires_grad=True)
        y = drop(w * 2).exp()
        y += 1
        y.sum().backward()
        """,
    "a layer that is the same in both modes": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.line = nn.Linear(3, 3)
            def step(self):
                y = self.line(torch.ones(3)).exp()
                y += 1
                y.sum().backward()
        """,
    "a function that sets the mode itself": """
        def step():
            drop = nn.Dropout(0.5).train()
            w = torch.ones(3, requires_grad=True)
            y = drop(w * 2).exp()
            y += 1
            y.sum().backward()
        """,
}


@pytest.mark.parametrize("body", [pytest.param(body, id=title) for title, body in TAKEN.items()])
def test_what_is_taken_for_granted_makes_a_finding_likely_and_is_named(body: str) -> None:
    defect = only(body)
    assert (defect.certainty, "F" in defect.conventions) == ("likely", True)


@pytest.mark.parametrize("body", [pytest.param(body, id=title) for title, body in KNOWN.items()])
def test_what_is_known_leaves_a_finding_certain(body: str) -> None:
    defect = only(body)
    assert (defect.certainty, defect.conventions) == ("certain", ())
