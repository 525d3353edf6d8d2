"""The pipeline for one file: what is found, what is mended, and what never happens to the bytes around it."""

from __future__ import annotations

import codecs
import pickle
from collections import Counter

import pytest
import toy
from toy import PLAN, plan

from gradfix.defects import Assumption, Span
from gradfix.engine import fix, ignore, known
from gradfix.outcome import Outcome
from gradfix.patch import LineMap, unified
from gradfix.rule import Safety, TextEdit


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    toy.install(monkeypatch.setattr)


def mended(content: bytes) -> bytes | None:
    """The new text that the safe toy makes."""
    outcome = fix("x.py", content, PLAN)
    assert outcome.failure is None
    return outcome.after


def codes(outcome: Outcome) -> list[str]:
    return [finding.code for finding in outcome.findings]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"x += y", b"x = x + y", id="no final newline"),
        pytest.param(b"a\r\nx += y\r\n", b"a\r\nx = x + y\r\n", id="carriage returns"),
        pytest.param(b"a\rx += y\rb", b"a\rx = x + y\rb", id="lone carriage returns"),
        pytest.param(codecs.BOM_UTF8 + b"x += y\n", codecs.BOM_UTF8 + b"x = x + y\n", id="a byte order mark"),
        pytest.param(
            b"#coding:latin-1\ns='\xe9'; x += y\n", b"#coding:latin-1\ns='\xe9'; x = x + y\n", id="latin-1"
        ),
        pytest.param(
            b"# coding: cp1251\nx += y # \xe9\n", b"# coding: cp1251\nx = x + y # \xe9\n", id="cp1251"
        ),
        pytest.param(b"\x0cx += y\n\x0c\n\x0cz\n", b"\x0cx = x + y\n\x0c\n\x0cz\n", id="form feeds"),
        pytest.param(
            b"if a:\n\tx += y\t\n\n\n", b"if a:\n\tx = x + y\t\n\n\n", id="tabs and spaces at line ends"
        ),
        pytest.param("é = ü; x += y\n".encode(), "é = ü; x = x + y\n".encode(), id="wide letters before it"),
    ],
)
def test_all_bytes_outside_the_rewrite_stay(before: bytes, after: bytes) -> None:
    assert mended(before) == after
    assert mended(after) is None


def test_a_file_with_nothing_to_find_has_no_new_text() -> None:
    assert fix("x.py", b"x = 1\n", PLAN) == Outcome("x.py")


def test_a_finding_says_what_the_defect_knew_in_characters() -> None:
    (finding,) = fix("x.py", "é = 1; x += é + y\n".encode(), PLAN).findings
    assert (finding.code, finding.rule, finding.message) == ("TOY1", "safe_toy", "`x += é + y` writes `x`")
    assert finding.span == Span(1, 7, 1, 17)
    assert finding.evidence[0].span == Span(1, 12, 1, 17)
    assert (finding.certainty, finding.impact, finding.safety) == ("certain", "crashes", Safety.SAFE)
    assert finding.says == "x = x + é + y"
    assert finding.edits == (TextEdit(1, 10, 1, 12, "= x +"),)


def test_all_that_is_found_is_mended_at_once_and_counted() -> None:
    outcome = fix("x.py", b"x += a\nif b: y += c; z += d\n", PLAN)
    assert outcome.after == b"x = x + a\nif b: y = y + c; z = z + d\n"
    assert outcome.applied == outcome.findings
    assert outcome.remaining == ()
    assert len(outcome.findings) == 3


def test_an_unsafe_fix_is_listed_and_applied_only_on_demand() -> None:
    content = b"x -= y\nz += y\n"
    cautious, bold = fix("x.py", content, PLAN), fix("x.py", content, plan(unsafe_fixes=True))
    assert codes(cautious) == codes(bold) == ["TOY2", "TOY1"]
    assert cautious.findings[0].safety is Safety.UNSAFE
    assert (cautious.after, bold.after) == (b"x -= y\nz = z + y\n", b"x = x - y\nz = z + y\n")
    assert [finding.code for finding in cautious.remaining] == ["TOY2"]


def test_what_remains_stands_where_the_new_text_has_it() -> None:
    outcome = fix("x.py", b"x += y; z *= y\n", PLAN)
    assert [finding.span.column for finding in outcome.findings] == [0, 8]
    assert [finding.span.column for finding in outcome.remaining] == [11]


def test_a_declined_rewrite_says_what_to_do() -> None:
    outcome = fix("x.py", b"x *= y\n", PLAN)
    (finding,) = outcome.findings
    assert (finding.safety, finding.decline, outcome.after) == (None, "do it by hand", None)


def test_the_least_certainty_of_what_is_listed() -> None:
    content = b"x += 1\nx += y\n"
    outcome = fix("x.py", content, plan(min_certainty="certain"))
    assert [finding.span.line for finding in outcome.findings] == [2]
    assert outcome.after == b"x += 1\nx = x + y\n"


def test_the_least_certainty_of_what_is_rewritten() -> None:
    outcome = fix("x.py", b"x += 1\nx += y\n", plan(fix_certainty="certain"))
    assert [finding.span.line for finding in outcome.findings] == [1, 2]
    assert outcome.after == b"x += 1\nx = x + y\n"
    assert [finding.span.line for finding in outcome.remaining] == [1]


def test_a_suspect_is_listed_only_where_somebody_asks_and_never_rewritten() -> None:
    content = b"x += ...\nz += y\n"
    outcome = fix("x.py", content, PLAN)
    assert [finding.certainty for finding in outcome.findings] == ["certain"]
    asked = fix("x.py", content, plan(suspects=True))
    assert [finding.certainty for finding in asked.findings] == ["suspect", "certain"]
    assert asked.findings[0].assumptions == (Assumption.NOBODY_ELSE_USES.value,)
    assert outcome.after == asked.after == b"x += ...\nz = z + y\n"
    assert [finding.certainty for finding in asked.remaining] == ["suspect"]


def test_a_comment_that_silences_a_suspect_is_not_called_unused() -> None:
    content = b"x += ...  # gradfix: ignore[TOY1]\n"
    assert fix("x.py", content, PLAN).unused_suppressions == ()
    assert fix("x.py", content, plan(suspects=True)).findings == ()


def test_rules_that_are_not_selected_find_nothing() -> None:
    assert fix("x.py", b"x += y\n", plan(select=("unsafe_toy",))).findings == ()


def test_a_rewrite_that_does_not_settle_is_not_made() -> None:
    outcome = fix("x.py", b"x /= y\n", PLAN)
    (finding,) = outcome.findings
    assert (finding.code, finding.safety, outcome.after, outcome.failure) == ("TOY11", None, None, None)
    assert "does not settle here" in finding.decline


def test_a_rewrite_that_does_not_settle_leaves_the_others_alone() -> None:
    outcome = fix("x.py", b"x /= y\nx += y\n", PLAN)
    assert outcome.after == b"x /= y\nx = x + y\n"
    assert codes(outcome) == ["TOY11", "TOY1"]
    assert [finding.code for finding in outcome.remaining] == ["TOY11"]


def test_a_rewrite_that_is_not_python_is_not_made() -> None:
    outcome = fix("x.py", b"a\nx %= y\n", PLAN)
    assert outcome.failure is not None and outcome.failure.stage == "check"
    assert "does not parse" in outcome.failure.reason
    assert (codes(outcome), outcome.after) == (["TOY12"], None)


@pytest.mark.parametrize(
    ("content", "stage", "reason"),
    [
        pytest.param(b"x |= y\n", "tape", "ZeroDivisionError: a rewrite that fails (toy.py:", id="a rewrite"),
        pytest.param(b"# tape: crash\n", "tape", "KeyError: 'the tape tore' (toy.py:", id="the tape"),
        pytest.param(b"x = (\n", "parse", "'(' was never closed", id="the parser"),
    ],
)
def test_what_raises_is_named_with_its_stage(content: bytes, stage: str, reason: str) -> None:
    failure = fix("x.py", content, PLAN).failure
    assert failure is not None
    assert (failure.stage, reason in failure.reason) == (stage, True)


def test_an_encoding_that_does_not_give_the_file_back_is_listed_but_not_rewritten() -> None:
    content = b"# coding: utf-7\nx -= y # +AGE-\n"
    outcome = fix("x.py", content, plan(unsafe_fixes=True))
    assert codes(outcome) == ["TOY2"]
    assert "utf-7" in outcome.findings[0].decline
    assert outcome.after is None


def test_a_file_that_is_mostly_data_is_listed_but_not_rewritten() -> None:
    outcome = fix("x.py", b"x -= y\n" + b"# 0123456789\n" * 160_000, plan(unsafe_fixes=True))
    assert [one.decline for one in outcome.findings] == [
        "a file of 2 MB isn't rewritten: move its data elsewhere"
    ]
    assert outcome.after is None


def test_a_suppression_silences_its_line_and_an_unused_one_is_named() -> None:
    content = b"x += y  # gradfix: ignore[TOY1]\nx += z\ny = 1  # gradfix: ignore\n"
    outcome = fix("x.py", content, PLAN)
    assert [finding.span.line for finding in outcome.findings] == [2]
    assert outcome.suppressed == 1
    assert [(unused.line, unused.text) for unused in outcome.unused_suppressions] == [(3, "gradfix: ignore")]
    assert outcome.after == content.replace(b"x += z", b"x = x + z")


def test_a_suppression_of_a_rule_that_was_not_looked_for_is_not_called_unused() -> None:
    outcome = fix("x.py", b"x -= y  # gradfix: ignore[TOY2]\n", plan(select=("safe_toy",)))
    assert outcome.unused_suppressions == ()


def test_the_beginning_of_a_code_is_unused_only_where_all_such_rules_are_looked_for() -> None:
    content = b"x = y  # gradfix: ignore[TOY1]\n"
    assert fix("x.py", content, PLAN).unused_suppressions != ()
    assert fix("x.py", content, plan(select=("safe_toy",))).unused_suppressions == ()


def test_a_file_can_be_skipped() -> None:
    assert fix("x.py", b"x += y\n# gradfix: skip-file\n", PLAN).skipped == "# gradfix: skip-file"


def test_what_the_tape_keeps_silent_about_is_passed_on_in_characters() -> None:
    (silence,) = fix("x.py", "é; pass\n".encode(), PLAN).silences
    assert (silence.span, silence.reason) == (Span(1, 3, 1, 7), "nothing happens here")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"x += y", b"x += y  # gradfix: ignore[TOY1]", id="a plain line"),
        pytest.param(
            b"x += y # why\r\n", b"x += y # why  # gradfix: ignore[TOY1]\r\n", id="after another comment"
        ),
        pytest.param(
            b"x += (y,\n\n z)\n", b"x += (y,\n\n z)  # gradfix: ignore[TOY1]\n", id="on the last line"
        ),
        pytest.param(
            b"x += y; x -= z\n", b"x += y; x -= z  # gradfix: ignore[TOY1, TOY2]\n", id="two on one line"
        ),
        pytest.param(
            b"x += y; x -= z  # gradfix: ignore[TOY2]\n",
            b"x += y; x -= z  # gradfix: ignore[TOY1, TOY2]\n",
            id="beside an older suppression",
        ),
        pytest.param(
            b"s = '#'; x += '''\n'''\n", b"s = '#'; x += '''\n'''  # gradfix: ignore[TOY1]\n", id="strings"
        ),
    ],
)
def test_everything_found_today_can_be_silenced(before: bytes, after: bytes) -> None:
    outcome = ignore("x.py", before, PLAN)
    assert (outcome.after, outcome.remaining) == (after, ())
    assert fix("x.py", after, PLAN).findings == ()
    assert len(outcome.applied) == len(outcome.findings) > 0


def test_known_findings_are_neither_listed_nor_mended_wherever_the_lines_went() -> None:
    old, new = b"a\nx += y\nz += y\n", b"b\nb\nx += y\nw += y\nx += y\n"
    before = fix("x.py", old, PLAN).findings
    seen_before = known(before, LineMap(unified("x.py", old, new)))
    outcome = fix("x.py", new, PLAN, seen_before)
    assert [finding.span.line for finding in outcome.findings] == [4, 5]
    assert outcome.after == b"b\nb\nx += y\nw = w + y\nx = x + y\n"
    assert outcome.remaining == ()


def test_a_second_finding_on_a_line_with_a_known_one_is_shown() -> None:
    outcome = fix("x.py", b"x += y; z += y\n", PLAN, Counter({("TOY1", 1): 1}))
    assert len(outcome.findings) == 1


def test_outcomes_cross_to_another_process() -> None:
    outcome = fix("x.py", b"x += y\npass\n", PLAN)
    assert pickle.loads(pickle.dumps(outcome)) == outcome
