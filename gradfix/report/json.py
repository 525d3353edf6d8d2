"""The findings as JSON, with the field names of ruff's own and what a broken gradient adds to them.

`fix` is null where there is none; its `applicability` is `safe`, `unsafe` or, of a fix that is never applied,
`suspect`. `assumptions` are what one would have to make sure of before a suspect is more than that;
`unknowns` say of what: `what` it is (`argument`, `call`, `import`, `budget` ...), its `name`, where it came
from, as far as that is known, and what it would be `settled_by`. `cell` is the cell of a notebook that rows
are counted in, null elsewhere; `url` is the page of the rule. gradfix/schemas/findings.json has it all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from gradfix.explain import address

if TYPE_CHECKING:
    from gradfix.defects import Evidence, Span
    from gradfix.defects.reasons import Reason
    from gradfix.outcome import Outcome, Run, View
    from gradfix.rule import Finding, TextEdit

Fields = dict[str, Any]


def _point(row: int, column: int) -> Fields:
    return {"row": row, "column": column}


def _located(outcome: Outcome, span: Span, path: str | None = None) -> Fields:
    """A place in a file: in a notebook its rows are those of a cell."""
    cell, line = (None, span.line) if path else outcome.at(span.line)
    return {
        "cell": cell,
        "filename": path or outcome.path,
        "location": _point(line, span.column + 1),
        "end_location": _point(line + span.end_line - span.line, span.end_column + 1),
    }


def _edit(outcome: Outcome, edit: TextEdit) -> Fields:
    cell, line = outcome.at(edit.line)
    return {
        "content": edit.text,
        "cell": cell,
        "location": _point(line, edit.column),
        "end_location": _point(line + edit.end_line - edit.line, edit.end_column),
    }


def _fix(outcome: Outcome, finding: Finding) -> Fields | None:
    if finding.safety is None:
        return None
    return {
        "applicability": finding.applicability,
        "message": finding.says,
        **({"unsafe": finding.unsafe} if finding.unsafe else {}),
        "edits": [_edit(outcome, edit) for edit in finding.edits],
    }


def _unknown(outcome: Outcome, reason: Reason) -> Fields:
    """What isn't known, and where it came from, if that is known."""
    at = reason.first
    place: Fields = {"cell": None, "filename": None, "location": None}
    if at is not None and at.span is not None:
        place = _located(outcome, at.span, at.path)
        del place["end_location"]
    return {
        "what": reason.root.what.name.lower(),
        "name": reason.root.name or None,
        "message": reason.says,
        "settled_by": reason.settled_by,
        **place,
    }


def _related(outcome: Outcome, step: Evidence) -> Fields:
    return {"message": step.says, **_located(outcome, step.span, step.path)}


def _verdict(outcome: Outcome, finding: Finding) -> Fields:
    """What the judge says of a finding, where it was asked."""
    if not outcome.verdicts:
        return {}
    own = (v for v in outcome.verdicts if (v.kind, v.line) == (finding.rule, finding.span.line))
    return {"verdict": next((verdict.to_json() for verdict in own), None)}


def _finding(outcome: Outcome, finding: Finding) -> Fields:
    return {
        "code": finding.code,
        "name": finding.rule,
        **_located(outcome, finding.span),
        "message": finding.message,
        "impact": finding.impact,
        "certainty": finding.certainty,
        "conventions": list(finding.conventions),
        "assumptions": list(finding.assumptions),
        "unknowns": [_unknown(outcome, reason) for reason in finding.unknowns],
        "condition": finding.condition or None,
        "torch_says": finding.torch_says or None,
        "related": [_related(outcome, step) for step in finding.evidence],
        "fix": _fix(outcome, finding),
        "by_hand": finding.decline or None,
        "noqa_row": outcome.at(finding.span.line)[1],
        "url": address(finding.rule),
        **_verdict(outcome, finding),
    }


def render(run: Run, stream: TextIO, view: View) -> None:
    """Write one array: a run without findings is an empty one."""
    json.dump([_finding(*found) for found in run.findings()], stream, indent=2)
    stream.write("\n")
