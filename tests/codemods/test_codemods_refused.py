"""Writes that torch refuses, by an index: what holds the memory is cloned first, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan

HEAD = "import torch\n\nx = torch.zeros(3, 1).expand(3, 4)\n"


def rewritten(text: str) -> str:
    outcome = fix("program.py", (HEAD + text).encode(), Plan(Config(Path())))
    assert outcome.after is not None
    return outcome.after.decode()[len(HEAD) :]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param("x[0] += 1\n", id="a row by a statement"),
        pytest.param("x[0].add_(1)\n", id="a row by a method"),
        pytest.param("x[:, 0:2] += 1\n", id="several columns"),
        pytest.param("x[1][1:] += 1\n", id="a part of a row"),
        pytest.param("for i in range(3):\n    x[i] += 1\n", id="row by row"),
    ],
)
def test_what_is_written_by_an_index_is_cloned_before_and_once(write: str) -> None:
    assert rewritten(write) == "x = x.clone()\n" + write
