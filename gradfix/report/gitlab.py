"""GitLab's Code Quality report: one issue for each finding, on the lines of a merge request."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, TextIO

from gradfix.report.sarif import fingerprints
from gradfix.report.wording import label, severity, told, way_out

if TYPE_CHECKING:
    from gradfix.outcome import Failure, Outcome, Run, View
    from gradfix.rule import Finding

SEVERITIES = {"error": "critical", "warning": "major", "note": "info"}
FAILED = "blocker"
Fields = dict[str, Any]


def _path(outcome: Outcome) -> str:
    """A file as GitLab knows it: seen from the project, whatever folder the job works in."""
    root = os.environ.get("CI_PROJECT_DIR")
    path = os.path.relpath(outcome.path, root) if root else outcome.path
    return path.replace(os.sep, "/")


def _print(path: str, what: str) -> str:
    """GitLab shows one issue for each fingerprint, so files that are alike need different ones."""
    return hashlib.sha256(f"{path}\n{what}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _issue(outcome: Outcome, finding: Finding, fingerprint: str) -> Fields:
    path = _path(outcome)
    way = f" ({label(finding)}: {way_out(finding)})" if way_out(finding) else ""
    return {
        "description": f"{finding.code} {told(finding)}{way}",
        "check_name": finding.code,
        "categories": ["Bug Risk"],
        "fingerprint": _print(path, fingerprint),
        "severity": SEVERITIES[severity(finding)],
        "location": {"path": path, "lines": {"begin": finding.span.line, "end": finding.span.end_line}},
    }


def _failed(outcome: Outcome, failure: Failure) -> Fields:
    path, line = _path(outcome), failure.line or 1
    return {
        "description": f"gradfix {failure.stage} failed: {failure.reason}",
        "check_name": "gradfix",
        "fingerprint": _print(path, failure.stage),
        "severity": FAILED,
        "location": {"path": path, "lines": {"begin": line, "end": line}},
    }


def render(run: Run, stream: TextIO, view: View) -> None:
    """Write one array: a run without findings is an empty one, which tells GitLab that all were mended."""
    issues = [
        _issue(outcome, finding, mark)
        for outcome in run.outcomes
        for finding, mark in zip(outcome.shown, fingerprints(outcome), strict=True)
    ]
    issues += [_failed(*failed) for failed in run.failed()]
    json.dump(issues, stream, indent=2)
    stream.write("\n")
