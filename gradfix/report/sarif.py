"""SARIF 2.1.0, for code scanning: evidence as code flows, rewrites as fixes, fingerprints that last."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote

from gradfix.explain import PAGES, address
from gradfix.report.wording import label, severity, told, way_out

if TYPE_CHECKING:
    from gradfix.defects import Span
    from gradfix.defects.reasons import Reason
    from gradfix.outcome import Failure, Outcome, RuleCard, Run, View
    from gradfix.rule import Finding, TextEdit

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
Fields = dict[str, Any]


def _artifact(path: str) -> Fields:
    """Name a file by URI: relative ones against the root of the sources."""
    pure = PurePath(path)
    if pure.is_absolute():
        return {"uri": "file://" + quote(pure.as_posix().encode("utf-8", "surrogateescape"))}
    return {"uri": quote(pure.as_posix().encode("utf-8", "surrogateescape")), "uriBaseId": "%SRCROOT%"}


def _region(span: Span) -> Fields:
    return {
        "startLine": span.line,
        "startColumn": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _location(path: str, span: Span) -> Fields:
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": _region(span)}}


def _flow(outcome: Outcome, finding: Finding) -> Fields:
    steps = [
        {"location": {**_location(step.path or outcome.path, step.span), "message": {"text": step.says}}}
        for step in finding.evidence
    ]
    return {"threadFlows": [{"locations": steps}]}


def _replacement(edit: TextEdit) -> Fields:
    return {
        "deletedRegion": {
            "startLine": edit.line,
            "startColumn": edit.column,
            "endLine": edit.end_line,
            "endColumn": edit.end_column,
        },
        "insertedContent": {"text": edit.text},
    }


def _fix(outcome: Outcome, finding: Finding) -> Fields:
    change = {
        "artifactLocation": _artifact(outcome.path),
        "replacements": [_replacement(edit) for edit in finding.edits],
    }
    return {"description": {"text": finding.says}, "artifactChanges": [change]}


def identity(finding: Finding, lines: Sequence[str]) -> str:
    """Describe a finding by what it is and what its lines say, not by where they are."""
    spans = [finding.span, *(step.span for step in finding.evidence if step.path is None)]
    code = ["".join(lines[span.line - 1].split()) for span in spans if 0 < span.line <= len(lines)]
    roles = [step.says for step in finding.evidence]
    return "\n".join([finding.code, *code, *roles])


def fingerprints(outcome: Outcome) -> list[str]:
    """Give each finding of a file a fingerprint; equal ones are told apart by their order."""
    seen: Counter[str] = Counter()
    prints: list[str] = []
    lines = outcome.lines
    for finding in outcome.shown:
        said = identity(finding, lines)
        seen[said] += 1
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        prints.append(f"{digest}:{seen[said]}")
    return prints


def _unknown(outcome: Outcome, reason: Reason) -> Fields:
    """What isn't known, and where it came from, if that is known."""
    at = reason.first
    place = {"location": _location(at.path or outcome.path, at.span)} if at is not None and at.span else {}
    return {
        "what": reason.root.what.name.lower(),
        "name": reason.root.name,
        "message": {"text": reason.says},
        "settledBy": reason.settled_by,
        **place,
    }


def _properties(outcome: Outcome, finding: Finding) -> Fields:
    return {
        "impact": finding.impact,
        "certainty": finding.certainty,
        "conventions": list(finding.conventions),
        "assumptions": list(finding.assumptions),
        "unknowns": [_unknown(outcome, reason) for reason in finding.unknowns],
        "applicability": finding.applicability,
    }


def _result(outcome: Outcome, finding: Finding, fingerprint: str) -> Fields:
    way = f"\n{label(finding).capitalize()}: {way_out(finding)}" if way_out(finding) else ""
    result: Fields = {
        "ruleId": finding.code,
        "level": severity(finding),
        "message": {"text": told(finding) + way},
        "locations": [_location(outcome.path, finding.span)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint, "gradfix/v1": fingerprint},
        "properties": _properties(outcome, finding),
    }
    if finding.evidence:
        result["codeFlows"] = [_flow(outcome, finding)]
    if finding.edits and finding.applicability != "suspect":
        result["fixes"] = [_fix(outcome, finding)]
    return result


def _rule(card: RuleCard) -> Fields:
    return {
        "id": card.code,
        "name": card.name,
        "helpUri": address(card.name),
        "shortDescription": {"text": card.summary or card.name},
        "fullDescription": {"text": card.docs or card.name},
        "help": {"text": card.docs or card.name, "markdown": card.docs or card.name},
    }


def _notification(outcome: Outcome, failure: Failure) -> Fields:
    place: Fields = {"physicalLocation": {"artifactLocation": _artifact(outcome.path)}}
    where = f"cell {failure.cell}, line {failure.line}: " if failure.cell else ""
    if failure.line and not where:
        place["physicalLocation"]["region"] = {"startLine": failure.line}
    return {
        "level": "error",
        "message": {"text": f"{failure.stage}: {where}{failure.reason}"},
        "locations": [place],
    }


def _driver(run: Run) -> Fields:
    rules = [_rule(card) for card in run.rules()]
    driver: Fields = {"name": "gradfix", "informationUri": f"{PAGES}/", "rules": rules}
    try:
        driver["version"] = version("gradfix")
    except PackageNotFoundError:
        return driver
    return driver


def log(run: Run) -> Fields:
    """Build the whole log: one run, its rules, results and the files that failed."""
    failed = [_notification(*pair) for pair in run.failed()]
    results = [
        _result(outcome, finding, mark)
        for outcome in run.outcomes
        if outcome.shown
        for finding, mark in zip(outcome.shown, fingerprints(outcome), strict=True)
    ]
    described: Fields = {
        "tool": {"driver": _driver(run)},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failed, "toolExecutionNotifications": failed}],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [described]}


def render(run: Run, stream: TextIO, view: View) -> None:
    """Write the log."""
    json.dump(log(run), stream, indent=2)
    stream.write("\n")
