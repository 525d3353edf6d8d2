"""One line for each finding, as compilers print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from gradfix.report.screen import Line, Piece, harmless, write
from gradfix.report.wording import remedy, told

if TYPE_CHECKING:
    from gradfix.outcome import Outcome, Run, View
    from gradfix.rule import Finding


def _line(outcome: Outcome, finding: Finding) -> Line:
    place = f"{harmless(outcome.path)}:{finding.span.line}:{finding.span.column + 1}:"
    tags = f"[{finding.impact}, {finding.certainty}, {remedy(finding)}]"
    return [
        Piece(place, "bold"),
        Piece(f" {finding.code}", "bold red"),
        Piece(f" {tags} {harmless(told(finding))}"),
    ]


def render(run: Run, stream: TextIO, view: View) -> None:
    """Print the findings, one line each."""
    write(stream, (_line(*found) for found in run.findings()), view.colour)
