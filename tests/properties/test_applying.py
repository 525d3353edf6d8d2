"""Applying fixes again changes nothing, and one at a time they come to the same text as all at once."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import pytest
from injection.bugs import BUGS, inject

from gradfix import suppressions
from gradfix.config import Config
from gradfix.edits import apply
from gradfix.engine import ROUNDS, fix
from gradfix.findings import look
from gradfix.outcome import Outcome
from gradfix.plan import Plan
from gradfix.review import Answer, Question, reviewed
from gradfix.source import Source, parse

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
PLAN = Plan(Config(FIXTURES, unsafe_fixes=True))
FILES, EACH = 5, 12
"""Into which of the healthy files bugs are put, and which of the broken ones are looked at."""
ONE_IS_ENOUGH = {
    "detached_loss_path/parenthesised_sum",
    "no_leaf_requires_grad/weights_of_a_linear_regression",
}
"""Where one mended place gives the loss a graph; what keeps others out of it may be meant from then on."""


def broken() -> Iterator[tuple[str, str]]:
    """Fixtures by their folder, and some of the injected programs by what was put in."""
    for path in sorted(FIXTURES.glob("*/*/before.py")):
        yield f"{path.parent.parent.name}/{path.parent.name}", path.read_text("utf-8")
    healthy = sorted([*FIXTURES.glob("*/*/after.py"), *FIXTURES.glob("*/*/keep.py")])
    texts = ((path, path.read_text("utf-8")) for path in healthy[::FILES])
    injected = [(path, one) for path, text in texts for bug in BUGS for one in inject(bug, text)]
    for path, one in injected[::EACH]:
        yield f"{path.parent.name}: {one.bug} in line {one.line}", one.text


@cache
def mended() -> list[tuple[str, str, Outcome]]:
    """What all at once comes to, where anything is applied."""
    outcomes = ((name, text, fix("program.py", text.encode(), PLAN)) for name, text in broken())
    return [each for each in outcomes if each[2].after is not None]


def one_at_a_time(text: str, which: int) -> str:
    """The text after the first fix, or the last, has been applied as long as there is one."""
    for _ in range(ROUNDS):
        source = parse("program.py", text.encode())
        assert isinstance(source, Source)
        seen = look(source, suppressions.read(source), PLAN)
        fixes = [one.fix for one in seen.candidates if one.fix and PLAN.applies(one.finding)]
        if not fixes or seen.tree is None:
            return text
        text = apply(seen.tree, fixes[which].edits)
    raise AssertionError("it does not settle")


def test_a_second_application_changes_nothing() -> None:
    assert len(mended()) > 250
    again = ((name, fix("program.py", one.after or b"", PLAN)) for name, _, one in mended())
    assert [name for name, one in again if one.after is not None] == []


@pytest.mark.parametrize("which", [pytest.param(0, id="the first"), pytest.param(-1, id="the last")])
def test_one_fix_at_a_time_comes_to_the_same_text_as_all_at_once(which: int) -> None:
    several = [(name, text, one.after) for name, text, one in mended() if len(one.applied) > 1]
    assert len(several) > 8
    other = {name for name, text, after in several if one_at_a_time(text, which).encode() != after}
    assert other == ONE_IS_ENOUGH


def test_each_rewrite_is_on_a_line_that_the_new_text_has_and_near_what_it_changes() -> None:
    """Where one is taken out between two blank lines, either of them may count as gone."""
    astray = []
    for name, text, one in mended():
        old, new = text.splitlines(), (one.after or b"").decode().splitlines()
        assert len(one.fixed_at) == len(one.applied)
        groups = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        changed = {
            line for tag, _, _, start, end in groups if tag != "equal" for line in range(start, end + 3)
        }
        astray += [name for line in one.fixed_at if not (1 <= line <= len(new) and line in changed)]
    assert astray == []


def taken(question: Question) -> Answer:
    return "take" if PLAN.applies(question.finding) else "skip"


def test_who_takes_each_fix_that_is_offered_comes_to_the_same_text_as_all_at_once() -> None:
    several = [(name, text, one) for name, text, one in mended() if len(one.applied) > 1]
    asked = (
        (name, one.after, reviewed(fix("program.py", text.encode(), PLAN), PLAN, taken)[0])
        for name, text, one in several
    )
    assert {name for name, after, one in asked if one.after != after} == ONE_IS_ENOUGH


def test_who_takes_the_rest_at_the_first_question_comes_to_the_same_text_as_all_at_once() -> None:
    several = [(name, text, one) for name, text, one in mended() if len(one.applied) > 1]
    rest = (
        (name, one.after, reviewed(fix("program.py", text.encode(), PLAN), PLAN, lambda _: "rest")[0])
        for name, text, one in several
    )
    assert {name for name, after, one in rest if one.after != after} <= ONE_IS_ENOUGH
