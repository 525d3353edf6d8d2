"""What has been rewritten so far, and where it stands in the text as it is by now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from gradfix.outcome import Outcome
from gradfix.rule import Finding

Place = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(slots=True)
class Applied:
    """Findings in the order in which they were mended, each with the place of its rewrite by now."""

    findings: list[Finding] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def add(self, mended: Collection[Finding]) -> None:
        """Say what was mended at once in the text as it was."""
        starts = [_start(finding) for finding in mended]
        self.places = [moved(place, mended) for place in [*self.places, *starts]]
        self.findings += mended

    def told(self, outcome: Outcome) -> Outcome:
        """An outcome that says so."""
        lines = tuple(line for line, _ in self.places)
        return replace(outcome, applied=tuple(self.findings), fixed_at=lines)


def _start(finding: Finding) -> Place:
    """Where the edit nearest to the culprit begins: one that adds lines below begins with a line's end."""
    first = min(finding.edits, key=lambda edit: abs(edit.line - finding.span.line))
    ends = len(first.text) - len(first.text.lstrip("\r\n"))
    return (first.line + first.text[:ends].count("\n"), 1) if ends else (first.line, first.column)


def moved(place: Place, mended: Collection[Finding]) -> Place:
    """Where a place is once all that was rewritten above it has its new number of lines."""
    edits = (edit for finding in mended for edit in finding.edits)
    above = (edit for edit in edits if (edit.line, edit.column) < place and edit.end_line <= place[0])
    return place[0] + sum(edit.text.count("\n") - edit.end_line + edit.line for edit in above), place[1]
