"""The source lines that a finding quotes: what they show on screen, and the stretches it speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradfix.defects import Span
from gradfix.report.screen import cells, expand, harmless
from gradfix.rule import Finding

CLIPPED = "..."
UNSAID = "here"


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a line, in characters of what it shows, and the role that it plays."""

    start: int
    end: int
    role: str
    culprit: bool


@dataclass(frozen=True, slots=True)
class Quote:
    """A source line to show."""

    number: int
    shown: tuple[str, ...]
    """What each character shows as."""
    marks: tuple[Mark, ...]

    @property
    def width(self) -> int:
        """The cells that the line takes."""
        return cells("".join(self.shown))


def _roles(finding: Finding, path: str | None) -> dict[Span, str]:
    """Join the roles of each span of a file; a culprit that the evidence leaves out is pointed at."""
    roles: dict[Span, list[str]] = {finding.span: []} if path is None else {}
    for step in finding.evidence:
        if step.path == path and step.says not in roles.setdefault(step.span, []):
            roles[step.span].append(harmless(step.says))
    lines = {span.line for span, said in roles.items() if said}
    if path is None and lines and finding.span.line not in lines:
        roles[finding.span].append(UNSAID)
    return {span: "; ".join(said) for span, said in roles.items()}


def quotes(finding: Finding, lines: Sequence[str], path: str | None) -> list[Quote]:
    """Collect the lines of one file that explain a finding, in the file's order; None is its own file."""
    roles = _roles(finding, path)
    numbers = sorted({span.line for span in roles if 0 < span.line <= len(lines)})
    return [
        _quote(number, lines[number - 1], roles, finding.span if path is None else None) for number in numbers
    ]


def _quote(number: int, text: str, roles: dict[Span, str], culprit: Span | None) -> Quote:
    here = {span: role for span, role in roles.items() if span.line == number}
    shown = expand(text.rstrip())
    length = len(shown)
    if any(span.end_line > number for span in here):
        shown.append(f" {CLIPPED}")
    marks = (_mark(span, role, length, span == culprit) for span, role in here.items())
    return Quote(number, tuple(shown), tuple(marks))


def _mark(span: Span, role: str, length: int, culprit: bool) -> Mark:
    end = length if span.end_line > span.line else min(span.end_column, length)
    return Mark(min(span.column, end), end, role, culprit)


def _moved(quote: Quote, shown: tuple[str, ...], shift: int) -> Quote:
    marks = (
        Mark(
            min(max(mark.start + shift, 0), len(shown)),
            min(max(mark.end + shift, 0), len(shown)),
            mark.role,
            mark.culprit,
        )
        for mark in quote.marks
    )
    return Quote(quote.number, shown, tuple(marks))


def flush(quoted: Sequence[Quote]) -> list[Quote]:
    """Take the margin off that all lines share."""
    texts = ["".join(quote.shown) for quote in quoted]
    margin = min((len(text) - len(text.lstrip(" ")) for text in texts if text.strip()), default=0)
    return [_without_margin(quote, margin) for quote in quoted]


def _without_margin(quote: Quote, margin: int) -> Quote:
    left, taken = margin, 0
    while left > 0 and taken < len(quote.shown):
        left -= len(quote.shown[taken])
        taken += 1
    rest = quote.shown[taken:]
    return _moved(quote, (" " * -left, *rest), 1 - taken) if left < 0 else _moved(quote, rest, -taken)


def clipped(quote: Quote, room: int) -> Quote:
    """Cut a line to its room so that what matters is seen: the far end goes first, then the front."""
    if quote.width <= room:
        return quote
    first = _first(quote, room)
    if first:
        quote = _moved(quote, (CLIPPED, *quote.shown[first:]), 1 - first)
    if quote.width <= room:
        return quote
    kept = _fitting(quote.shown, room)
    return _moved(quote, (*quote.shown[:kept], CLIPPED), 0)


def _first(quote: Quote, room: int) -> int:
    """Find the first character to show: the line's own unless the marked stretch would not be seen."""
    mark = max(quote.marks, key=lambda mark: mark.culprit)
    if cells("".join(quote.shown[: mark.end])) <= room - len(CLIPPED):
        return 0
    stretch = cells("".join(quote.shown[mark.start : mark.end]))
    lead = max((room - stretch) // 2, len(CLIPPED)) - len(CLIPPED)
    first = mark.start
    while first > 0 and (lead := lead - cells(quote.shown[first - 1])) >= 0:
        first -= 1
    return first


def _fitting(shown: Sequence[str], room: int) -> int:
    """Count the characters that fit, room left for the sign that something was cut."""
    width, kept = len(CLIPPED), 0
    while kept < len(shown) and width + cells(shown[kept]) <= room:
        width += cells(shown[kept])
        kept += 1
    return kept
