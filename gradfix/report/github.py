"""Workflow commands, which GitHub Actions turns into annotations on the lines of a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from gradfix.report.screen import Piece, write
from gradfix.report.wording import label, severity, told, way_out

if TYPE_CHECKING:
    from gradfix.outcome import Failure, Outcome, Run, View
    from gradfix.rule import Finding

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def _command(name: str, properties: Mapping[str, object], message: str) -> str:
    told = ",".join(f"{key}={str(value).translate(IN_PROPERTY)}" for key, value in properties.items())
    return f"::{name} {told}::{message.translate(IN_MESSAGE)}"


def _columns(finding: Finding) -> dict[str, object]:
    """Columns count on a single line only: GitHub refuses them on a range of lines."""
    span = finding.span
    if span.end_line > span.line:
        return {}
    return {"col": span.column + 1, "endColumn": span.end_column + 1}


def _annotation(outcome: Outcome, finding: Finding) -> str:
    properties = {
        "title": f"gradfix {finding.code} ({finding.impact})",
        "file": outcome.path,
        "line": finding.span.line,
        "endLine": finding.span.end_line,
        **_columns(finding),
    }
    place = f"{outcome.path}:{finding.span.line}:{finding.span.column + 1}"
    way = f"\n{label(finding)}: {way_out(finding)}" if way_out(finding) else ""
    return _command(COMMANDS[severity(finding)], properties, f"{place}: {finding.code} {told(finding)}{way}")


def _failed(outcome: Outcome, failure: Failure) -> str:
    properties = {
        "title": "gradfix",
        "file": outcome.path,
        **({"line": failure.line} if failure.line and not failure.cell else {}),
    }
    where = f"{outcome.path}:cell {failure.cell}:{failure.line}" if failure.cell else outcome.path
    return _command("error", properties, f"{where}: {failure.stage} failed: {failure.reason}")


def render(run: Run, stream: TextIO, view: View) -> None:
    """Print one command for each finding and for each file that failed."""
    commands = [_annotation(*found) for found in run.findings()] + [
        _failed(*failed) for failed in run.failed()
    ]
    write(stream, ([Piece(command)] for command in commands), colour=False)
