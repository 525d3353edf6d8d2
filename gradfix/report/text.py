"""The listing for people: each finding with its evidence, its rewrite and torch's own words."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from gradfix import files
from gradfix.defects import Convention
from gradfix.outcome import Outcome
from gradfix.report.frame import drawn, elsewhere
from gradfix.report.quotes import quotes
from gradfix.report.screen import Line, Piece, cells, columns, harmless, write
from gradfix.report.wording import certainty, label, remedy, unknown, way_out

if TYPE_CHECKING:
    from gradfix.outcome import Run, View
    from gradfix.rule import Finding

MARGIN = " " * 6
IMPACT_STYLES = {"crashes": "red", "trains wrong": "magenta", "wastes memory": "yellow", "style": "blue"}


def _place(outcome: Outcome, finding: Finding) -> str:
    return f"{harmless(outcome.path)}:{finding.span.line}:{finding.span.column + 1}"


def _header(outcome: Outcome, finding: Finding) -> Line:
    return [
        Piece(_place(outcome, finding), "bold"),
        Piece(" "),
        Piece(finding.code, "bold red"),
        Piece(" ["),
        Piece(finding.impact, IMPACT_STYLES[finding.impact]),
        Piece(f", {certainty(finding)}, {remedy(finding)}]"),
    ]


def _width(line: Line) -> int:
    return sum(cells(piece.text) for piece in line)


def _announced(outcome: Outcome, finding: Finding, width: int) -> Iterator[Line]:
    header, message = _header(outcome, finding), harmless(finding.message)
    if _width(header) + 1 + cells(message) <= width:
        yield [*header, Piece(f" {message}")]
        return
    yield header
    yield from ([Piece(MARGIN + text)] for text in _wrapped(message, width))


def _wrapped(text: str, width: int, hang: int = 0) -> list[str]:
    return wrap(text, width - len(MARGIN) - hang, break_long_words=False, break_on_hyphens=False)


def _remarks(finding: Finding) -> Iterator[tuple[str, str, str]]:
    """What stands under the frame: a label, its text and the label's style."""
    if finding.condition:
        yield "when", finding.condition, ""
    for assumption in finding.assumptions:
        yield "if", assumption, "yellow"
    for reason in finding.unknowns:
        yield "unknown", unknown(reason), "yellow"
    if way_out(finding):
        yield label(finding), way_out(finding), "yellow" if finding.safety is None else "green"
    if finding.torch_says:
        yield "torch says", f'"{finding.torch_says}"', "dim"


def _labelled(label: str, text: str, style: str, width: int) -> Iterator[Line]:
    hang = len(label) + 2
    for index, part in enumerate(_wrapped(harmless(text), width, hang) or [""]):
        yield [Piece(MARGIN), Piece(f"{label}: " if index == 0 else " " * hang, style), Piece(part)]


def _closing(finding: Finding, width: int) -> Iterator[Line]:
    remarks = [list(_labelled(*remark, width)) for remark in _remarks(finding)]
    for lines in _side_by_side(remarks, width):
        yield from lines


def _side_by_side(remarks: list[list[Line]], width: int) -> list[list[Line]]:
    """Put torch's words on the line of the fix where both fit."""
    if len(remarks) < 2 or any(len(lines) > 1 for lines in remarks[-2:]):
        return remarks
    left, right = remarks[-2][0], remarks[-1][0]
    if _width(left) + 3 + _width(right) - len(MARGIN) > width:
        return remarks
    return [*remarks[:-2], [[*left, Piece("   "), *right[1:]]]]


def _told(
    outcome: Outcome, finding: Finding, texts: Mapping[str, Sequence[str]], width: int
) -> Iterator[Line]:
    yield from _announced(outcome, finding, width)
    yield from drawn(quotes(finding, texts[outcome.path], None), width)
    yield from elsewhere(finding, texts, width)
    yield from _closing(finding, width)


def _legend(run: Run, width: int) -> Iterator[Line]:
    likely = (finding for _, finding in run.findings() if finding.certainty == "likely")
    letters = sorted({letter for finding in likely for letter in finding.conventions})
    for letter in filter(Convention.__members__.__contains__, letters):
        for index, text in enumerate(wrap(Convention[letter].value, width - 12)):
            yield [Piece(f"likely, {letter}: " if index == 0 else " " * 11, "dim"), Piece(text, "dim")]


def _neighbours(run: Run, known: Container[str]) -> Iterator[tuple[str, list[str]]]:
    """The text of the files that evidence lies in although nothing was found there."""
    paths = (step.path for _, finding in run.findings() for step in finding.evidence)
    for path in dict.fromkeys(path for path in paths if path and path not in known):
        content = files.read(path)
        if isinstance(content, bytes):
            yield path, Outcome(path, before=content).lines


def render(run: Run, stream: TextIO, view: View) -> None:
    """List the findings; nothing is printed where nothing was found."""
    width = columns()
    texts = {outcome.path: outcome.lines for outcome in run.outcomes if outcome.before is not None}
    texts.update(_neighbours(run, texts))
    for outcome, finding in run.findings():
        write(stream, _told(outcome, finding, {outcome.path: [], **texts}, width), view.colour)
    write(stream, _legend(run, width), view.colour)
