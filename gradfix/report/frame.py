"""The code frame of a finding: the lines of evidence with their roles, fitted into the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap

from gradfix.report.quotes import CLIPPED, Mark, Quote, clipped, flush, quotes
from gradfix.report.screen import Line, Piece, cells, harmless
from gradfix.rule import Finding

GUTTER = 5
BAR = " | "
ROLE_MARK = "<- "
GAP = 3
STYLES = {True: "bold red", False: "cyan"}


def _number(number: int | None, gutter: int) -> Piece:
    return Piece(f"{'' if number is None else number:>{gutter}}{BAR}", "dim")


def _code(quote: Quote) -> Line:
    """Colour a line's marks, the shorter over the longer."""
    styles = [""] * len(quote.shown)
    for mark in sorted(quote.marks, key=lambda mark: mark.start - mark.end):
        styles[mark.start : mark.end] = [STYLES[mark.culprit]] * (mark.end - mark.start)
    runs = groupby(zip(quote.shown, styles, strict=True), key=lambda pair: pair[1])
    return [Piece("".join(text for text, _ in run), style) for style, run in runs]


def _role(quote: Quote) -> Mark | None:
    return next((mark for mark in quote.marks if mark.role), None)


def _beside(quoted: Sequence[Quote], gutter: int) -> Iterator[Line]:
    widest = max((quote.width for quote in quoted if _role(quote)), default=0)
    for quote in quoted:
        line = [_number(quote.number, gutter), *_code(quote)]
        if mark := _role(quote):
            fill = " " * (widest - quote.width + GAP)
            line += [Piece(fill), Piece(ROLE_MARK + mark.role, STYLES[mark.culprit])]
        yield line


def _underneath(quoted: Sequence[Quote], gutter: int, width: int) -> Iterator[Line]:
    room = width - gutter - len(BAR)
    for quote in (clipped(quote, room) for quote in quoted):
        yield [_number(quote.number, gutter), *_code(quote)]
        for mark in quote.marks:
            yield from ([_number(None, gutter), *line] for line in _marked(quote, mark, room))


def _marked(quote: Quote, mark: Mark, room: int) -> Iterator[Line]:
    if not mark.role:
        return
    start = min(cells("".join(quote.shown[: mark.start])), room - 1)
    carets = "^" * max(cells("".join(quote.shown[mark.start : mark.end])), 1)
    style = STYLES[mark.culprit]
    if start + len(carets) + 1 + cells(mark.role) <= room:
        yield [Piece(" " * start), Piece(f"{carets} {mark.role}", style)]
        return
    yield [Piece(" " * start), Piece(carets, style)]
    indent = min(start, max(room - cells(mark.role), 0))
    yield from ([Piece(" " * indent), Piece(text, style)] for text in wrap(mark.role, room - indent))


def _fits(quoted: Sequence[Quote], gutter: int, width: int) -> bool:
    if any(sum(bool(mark.role) for mark in quote.marks) > 1 for quote in quoted):
        return False
    roles = max((cells(mark.role) for quote in quoted for mark in quote.marks), default=0)
    code = max(quote.width for quote in quoted)
    return gutter + len(BAR) + code + (GAP + len(ROLE_MARK) + roles if roles else 0) <= width


def drawn(quoted: Sequence[Quote], width: int) -> list[Line]:
    """Draw lines with their roles: beside the code where all fit, else underneath, marked by carets."""
    if not quoted:
        return []
    gutter = max(GUTTER, 1 + max(len(str(quote.number)) for quote in quoted))
    lines = flush(quoted)
    return list(_beside(lines, gutter) if _fits(lines, gutter, width) else _underneath(lines, gutter, width))


def elsewhere(finding: Finding, texts: Mapping[str, Sequence[str]], width: int) -> Iterator[Line]:
    """Draw the evidence that lies in other files, each under its name."""
    for path in dict.fromkeys(step.path for step in finding.evidence if step.path):
        yield [Piece(f"{'':{GUTTER + 1}}in "), Piece(harmless(path), "bold")]
        yield from (
            drawn(quotes(finding, texts[path], path), width) if path in texts else _unseen(finding, path)
        )


def _unseen(finding: Finding, path: str) -> Iterator[Line]:
    for step in finding.evidence:
        if step.path == path:
            yield [
                _number(step.span.line, GUTTER),
                Piece(CLIPPED + " " * GAP),
                Piece(ROLE_MARK + harmless(step.says)),
            ]
