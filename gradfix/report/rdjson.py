"""Reviewdog's diagnostics, with each edit as a suggestion that a reviewer can accept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from gradfix.explain import address
from gradfix.report.wording import label, severity, told, way_out

if TYPE_CHECKING:
    from gradfix.defects import Evidence, Span
    from gradfix.outcome import Outcome, Run, View
    from gradfix.rule import Finding, TextEdit

SEVERITIES = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}
Fields = dict[str, Any]


def _point(lines: Sequence[str], line: int, column: int) -> Fields:
    """Count a column in UTF-8 bytes from 1, as the format asks."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    behind = max(column - len(text), 0)
    return {"line": line, "column": len(text[:column].encode("utf-8", "surrogatepass")) + behind + 1}


def _range(lines: Sequence[str], span: Span) -> Fields:
    return {
        "start": _point(lines, span.line, span.column),
        "end": _point(lines, span.end_line, span.end_column),
    }


def _suggestion(lines: Sequence[str], edit: TextEdit) -> Fields:
    return {
        "range": {
            "start": _point(lines, edit.line, edit.column - 1),
            "end": _point(lines, edit.end_line, edit.end_column - 1),
        },
        "text": edit.text,
    }


def _related(outcome: Outcome, lines: Sequence[str], step: Evidence) -> Fields:
    place: Fields = {"path": step.path or outcome.path}
    if step.path is None:
        place["range"] = _range(lines, step.span)
    else:
        place["range"] = {"start": {"line": step.span.line}, "end": {"line": step.span.end_line}}
    return {"message": step.says, "location": place}


def _message(finding: Finding) -> str:
    way = way_out(finding)
    return f"{told(finding)}\n{label(finding)}: {way}" if way else told(finding)


def _offered(finding: Finding) -> Sequence[TextEdit]:
    """What may be accepted with a click."""
    return () if finding.applicability == "suspect" else finding.edits


def _diagnostic(outcome: Outcome, lines: Sequence[str], finding: Finding) -> Fields:
    return {
        "message": _message(finding),
        "location": {"path": outcome.path, "range": _range(lines, finding.span)},
        "severity": SEVERITIES[severity(finding)],
        "code": {"value": finding.code, "url": address(finding.rule)},
        "suggestions": [_suggestion(lines, edit) for edit in _offered(finding)],
        "relatedLocations": [_related(outcome, lines, step) for step in finding.evidence],
    }


def render(run: Run, stream: TextIO, view: View) -> None:
    """Write one DiagnosticResult."""
    diagnostics = [
        _diagnostic(outcome, lines, finding)
        for outcome in run.outcomes
        for lines in [outcome.lines]
        for finding in outcome.shown
    ]
    json.dump(
        {"source": {"name": "gradfix"}, "severity": "WARNING", "diagnostics": diagnostics}, stream, indent=2
    )
    stream.write("\n")
