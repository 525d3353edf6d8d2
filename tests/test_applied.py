"""Where a rewrite is in the text that all of them leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.plan import Plan
from gradfix.review import Answer, Question, reviewed

PLAN = Plan(Config(Path(), unsafe_fixes=True))
HEAD = """\
import torch
from torch import nn

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
FIXTURES = Path(__file__).parent.parent / "fixtures"


def places(text: str) -> list[tuple[str, str]]:
    """Each rule that was applied, with the line of the new text that is named for it."""
    outcome = fix("train.py", text.encode(), PLAN)
    assert outcome.after is not None
    lines = outcome.after.decode().splitlines()
    pairs = zip(outcome.applied, outcome.fixed_at, strict=True)
    return sorted((finding.code, lines[line - 1].strip()) for finding, line in pairs)


def test_what_a_later_round_adds_above_moves_what_an_earlier_one_has_written() -> None:
    text = HEAD + (
        "for step in range(100):\n"
        "    x, y = torch.randn(8, 4), torch.randn(8, 3)\n"
        "    scores = torch.sigmoid(model(x))\n"
        "    scores *= 10\n"
        "    loss = (scores - y).pow(2)\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    assert places(text) == [
        ("GF101", "scores = scores * 10"),
        ("GF301", "loss.sum().backward()"),
        ("GF401", "optimizer.zero_grad()"),
    ]


def test_two_loops_have_lines_of_their_own() -> None:
    loop = "for _ in range(3):\n    model(torch.ones(2, 4)).sum().backward()\n    optimizer.step()\n"
    outcome = fix("train.py", (HEAD + loop + loop).encode(), PLAN)
    assert [finding.code for finding in outcome.applied] == ["GF401", "GF401"]
    lines = (outcome.after or b"").decode().splitlines()
    assert [number for number, line in enumerate(lines, 1) if "zero_grad" in line] == sorted(outcome.fixed_at)


@pytest.mark.parametrize("rule", ["inplace_overwrites_saved", "missing_zero_grad", "non_scalar_backward"])
def test_the_line_that_is_named_holds_what_is_said_of_it(rule: str) -> None:
    """For rewrites that say the line that they write, or the one behind what it needs."""
    seen = 0
    for case in sorted(FIXTURES.glob(f"{rule}/*/before.py")):
        outcome = fix("program.py", case.read_bytes(), PLAN)
        lines = (outcome.after or b"").decode().splitlines()
        for finding, line in zip(outcome.applied, outcome.fixed_at, strict=True):
            if finding.says in map(str.strip, lines):
                seen += 1
                assert finding.says in map(str.strip, lines[line - 1 : line + 1]), case.parent.name
    assert seen > 5


def test_what_was_passed_over_is_not_asked_of_again_when_lines_are_added_above_it() -> None:
    loop = (
        "for _ in range(3):\n    loss = model(torch.ones(2, 4)).pow(2)\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    asked: list[str] = []

    def ask(question: Question) -> Answer:
        asked.append(f"{question.finding.code} in line {question.finding.span.line}")
        return "take" if len(asked) in (2, 3) else "skip"

    outcome, _ = reviewed(fix("train.py", (HEAD + loop + loop).encode(), PLAN), PLAN, ask)
    assert asked == ["GF401 in line 8", "GF301 in line 8", "GF401 in line 12", "GF301 in line 13"]
    assert [finding.code for finding in outcome.remaining] == ["GF401", "GF301"]
