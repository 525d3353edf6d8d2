"""How often each rule found something, and how much of it can be fixed."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, TextIO

from gradfix.report.screen import Line, Piece, write

if TYPE_CHECKING:
    from gradfix.outcome import Run, View
    from gradfix.rule import Applicability, Finding

Counted = list[tuple[str, list["Finding"]]]


def _counted(run: Run) -> Counted:
    """Group the findings by code, the most frequent first."""
    groups: defaultdict[str, list[Finding]] = defaultdict(list)
    for _, finding in run.findings():
        groups[finding.code].append(finding)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def _fixable(findings: list[Finding], how: Applicability) -> int:
    return sum(finding.applicability == how for finding in findings)


def _remedies(findings: list[Finding]) -> str:
    counts = {
        "safe": _fixable(findings, "safe"),
        "unsafe": _fixable(findings, "unsafe"),
        "suspect": _fixable(findings, "suspect"),
        "by hand": _fixable(findings, "none"),
    }
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def _lines(counted: Counted) -> list[Line]:
    digits = max((len(str(len(findings))) for _, findings in counted), default=0)
    names = max((len(findings[0].rule) for _, findings in counted), default=0)
    return [
        [
            Piece(f"{len(findings):>{digits}}", "bold"),
            Piece(f"  {code}", "bold red"),
            Piece(f"  {findings[0].rule:<{names}}  {_remedies(findings)}"),
        ]
        for code, findings in counted
    ]


def _fields(code: str, findings: list[Finding]) -> dict[str, object]:
    return {
        "code": code,
        "name": findings[0].rule,
        "count": len(findings),
        "fixable": bool(_fixable(findings, "safe")),
        "safe": _fixable(findings, "safe"),
        "unsafe": _fixable(findings, "unsafe"),
    }


def render(run: Run, stream: TextIO, view: View) -> None:
    """Print a table, or JSON where JSON was asked for."""
    counted = _counted(run)
    if view.output_format == "json":
        json.dump([_fields(*item) for item in counted], stream, indent=2)
        stream.write("\n")
        return
    write(stream, _lines(counted), view.colour)
