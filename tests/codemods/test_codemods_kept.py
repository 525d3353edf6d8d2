"""What something else keeps of a tensor before it is written: both show the write, or it is unsafe."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.rule import Finding, Safety

LIVE = "import torch\n\n\ndef step(data, w):\n    h = (torch.ones(3, requires_grad=True) * w).exp()\n"


def findings(text: str, code: str) -> list[Finding]:
    outcome = fix("program.py", text.encode(), Plan(Config(Path())))
    return [one for one in outcome.findings if one.code == code]


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param("data.h = h", id="an attribute"),
        pytest.param("data.a.h = h", id="an attribute of an attribute"),
        pytest.param("data['h'] = h", id="an entry"),
    ],
)
def test_what_another_keeps_is_cloned_and_both_show_the_write(kept: str) -> None:
    (found,) = findings(LIVE + f"    {kept}\n    h += 1\n    h.sum().backward()\n", "GF101")
    assert found.says.endswith(".exp().clone()")


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param("data.h = w", id="something else"),
        pytest.param("data.h = h.detach().clone()", id="a copy"),
        pytest.param("data.h = h.sum()", id="what is made of it"),
        pytest.param("data.n = h.shape", id="its sizes"),
        pytest.param("print(data.h)", id="nothing of it"),
    ],
)
def test_what_nobody_else_keeps_is_written_out_of_place(kept: str) -> None:
    (found,) = findings(LIVE + f"    {kept}\n    h += 1\n    h.sum().backward()\n", "GF101")
    assert (found.says, found.safety) == ("h = h + 1", Safety.SAFE)


def test_what_an_object_keeps_would_not_see_a_refused_write() -> None:
    body = "    m = torch.zeros(3, 1).expand(3, 4)\n    {}\n    m += 1\n    return m\n"
    head = "import torch\n\n\ndef step(data):\n"
    (kept,) = findings(head + body.format("data.m = m"), "GF109")
    (alone,) = findings(head + body.format("data.m = m.clone()"), "GF109")
    assert (kept.safety, alone.safety) == (Safety.UNSAFE, Safety.SAFE)


def test_what_a_part_of_a_module_keeps_would_not_see_a_write() -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Part(nn.Module):\n    def forward(self, x):\n"
        "        return x * self.b\n\n\nclass Whole(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.part = Part()\n"
        "        self.w = nn.Parameter(torch.ones(3))\n\n"
        "    def forward(self, x):\n        h = (self.w * x).exp()\n        {} = h\n"
        "        h += 1\n        return self.part(h)\n"
    )
    (kept,) = findings(text.format("self.part.b"), "GF101")
    (alone,) = findings(text.format("other"), "GF101")
    assert (kept.says.endswith(".exp().clone()"), alone.says) == (True, "h = h + 1")
