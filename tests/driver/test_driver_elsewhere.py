"""What of an object somebody else may step, and how long a search may take beside others."""

from __future__ import annotations

import ast
import os

import pytest

from gradfix.driver import making
from gradfix.driver.elsewhere import attributes


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("self.layers = [nn.Linear(self.wide, 2)]", {"layers"}),
        ("self.layers.append(nn.utils.weight_norm(nn.Linear(2, 2)))", {"layers"}),
        ("blocks = [nn.utils.weight_norm(nn.Linear(2, 2))]", set()),
    ],
)
def test_only_what_the_object_keeps_counts(line: str, found: set[str]) -> None:
    assert attributes(ast.parse(line), 1) == found


@pytest.mark.parametrize(("load", "longer"), [(0.1, 1.0), (12.0, 3.0), (4000.0, 16.0)])
def test_a_busy_machine_is_waited_for(load: float, longer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert making.busy() == longer
