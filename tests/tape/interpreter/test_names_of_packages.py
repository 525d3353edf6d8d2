"""A name that a package elsewhere gives may be anything, False and None among it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding

PROGRAM = """import torch
from torch import nn
from settings import DEBUG, MODES, cfg

net = nn.Linear(3, 3)
y = net(torch.ones(2, 3)).sigmoid()
{body}
"""
WRITTEN = "if {test}:\n    y += 1\ny.sum().backward()"


def found(body: str) -> tuple[Finding, ...]:
    return fix("program.py", PROGRAM.format(body=body).encode(), Plan(Config(Path()))).findings


@pytest.mark.parametrize(
    "test", ["cfg.norm", "DEBUG", "cfg.mode == MODES.late", "cfg.kind != 'plain'", "not cfg.TRAIN.PLAIN"]
)
def test_what_hangs_on_it_has_it_as_its_condition(test: str) -> None:
    (one,) = found(WRITTEN.format(test=test))
    assert one.condition == test


@pytest.mark.parametrize("test", ["torch.relu", "nn.ReLU", "torch"])
def test_a_definition_of_torch_is_there(test: str) -> None:
    (one,) = found(WRITTEN.format(test=test))
    assert not one.condition


@pytest.mark.parametrize(
    ("first", "second"),
    [("cfg.late", "not cfg.late"), ('cfg.kind == "late"', 'cfg.kind != "late"'), ("DEBUG", "not DEBUG")],
)
def test_the_same_name_is_the_same_in_two_tests(first: str, second: str) -> None:
    assert not found(f"if {first}:\n    y += 1\nif {second}:\n    y.sum().backward()")
    assert found(f"if {first}:\n    y += 1\nif {first}:\n    y.sum().backward()")


def test_two_names_of_one_package_may_be_the_same_value() -> None:
    assert found("if MODES.a == cfg.mode:\n    y += 1\ny.sum().backward()")
    assert found("if torch.relu == torch.tanh:\n    y += 1\ny.sum().backward()") == ()
