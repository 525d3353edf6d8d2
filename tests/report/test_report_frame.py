"""A code frame can be drawn of any text and any places in it, and keeps to its width."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import BLOCK, overwritten

from gradfix.defects import Evidence, Role, Span
from gradfix.report.frame import drawn
from gradfix.report.quotes import quotes
from gradfix.report.screen import cells

CHARACTERS = st.text(st.sampled_from("ab =\t名e\u0301\u202e🔥"), max_size=12)
TEXT = st.builds(lambda text, times: text * times, CHARACTERS, st.integers(0, 20))
NUMBER = st.integers(0, 160)
SPANS = st.builds(
    lambda line, column, more, end: Span(line, column, line + more, end if more else column + end),
    st.integers(1, 6),
    NUMBER,
    st.integers(0, 2),
    NUMBER,
)
SUBJECTS = st.builds(lambda words: "role " * words, st.integers(0, 20))


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(TEXT, min_size=5, max_size=6),
    culprit=SPANS,
    evidence=st.lists(st.builds(Evidence, SPANS, st.sampled_from(Role), st.none(), SUBJECTS), max_size=4),
    width=st.integers(40, 130),
)
def test_any_frame_keeps_to_its_width(
    lines: list[str], culprit: Span, evidence: list[Evidence], width: int
) -> None:
    finding = replace(overwritten(), span=culprit, evidence=tuple(evidence))
    quoted = quotes(finding, lines, None)
    for line in drawn(quoted, width):
        assert cells("".join(piece.text for piece in line)) <= width


@settings(max_examples=100, deadline=None)
@given(width=st.integers(40, 130), padding=st.integers(0, 300))
def test_the_culprit_is_always_in_sight(width: int, padding: int) -> None:
    source = BLOCK.replace("out += shortcut", f"{'a; ' * padding}out += shortcut{' # b' * padding}")
    frame = drawn(quotes(overwritten(source), source.splitlines(), None), width)
    assert all(cells("".join(piece.text for piece in line)) <= width for line in frame)
    assert any("out += shortcut" in "".join(piece.text for piece in line) for line in frame)
