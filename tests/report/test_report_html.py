"""The page tells the same chain as the listing, line by line."""

from __future__ import annotations

import re
from dataclasses import replace

from report_runs import BLOCK, outcome, overwritten, span

from gradfix.defects import Evidence, Role
from gradfix.outcome import Outcome, Run
from gradfix.report.html import page

STEP = re.compile(r"<li>(.*?) <code>(.*?)</code> (.*?)</li>")


def steps(*outcomes: Outcome) -> list[tuple[str, str, str]]:
    """Where, what stands there, and what it does."""
    return STEP.findall(page(Run(outcomes)))


def test_evidence_comes_in_the_order_of_the_lines_as_in_the_listing() -> None:
    saved, written = overwritten().evidence
    turned = replace(overwritten(), evidence=(written, saved))
    assert steps(outcome([turned])) == [
        ("line 6", "out = F.relu(self.bn(x))", "saved here"),
        ("line 7", "out += shortcut", "overwritten here"),
    ]


def test_two_roles_of_a_line_stand_beside_it_once() -> None:
    both = replace(
        overwritten(),
        evidence=tuple(Evidence(overwritten().span, role) for role in (Role.SAVED, Role.OVERWRITTEN)),
    )
    assert steps(outcome([both])) == [("line 7", "out += shortcut", "saved here; overwritten here")]


def test_evidence_of_other_files_comes_last_under_their_names() -> None:
    far = tuple(
        Evidence(span(BLOCK, part), Role.SAVED, "layers.py") for part in ("return out", "class Block")
    )
    found = replace(overwritten(), evidence=(*far, *overwritten().evidence))
    assert [where for where, *_ in steps(outcome([found]))] == [
        "line 6",
        "line 7",
        "layers.py:4",
        "layers.py:8",
    ]


def test_lines_are_those_of_the_text_that_was_read_even_once_it_is_rewritten() -> None:
    written = replace(outcome([overwritten()]), after=b"# a new line\n" + BLOCK.encode(), written=True)
    assert steps(written) == steps(outcome([overwritten()]))


def test_what_a_file_says_is_text_and_no_markup() -> None:
    source = BLOCK.replace("shortcut\n", "shortcut  # <b>\n", 1).replace(
        "out += shortcut", "out += shortcut  # <i>"
    )
    assert "&lt;i&gt;" in steps(outcome([overwritten(source)], source))[1][1]
