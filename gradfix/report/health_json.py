"""The health of a code base as JSON: its modules, the findings of its files, and the counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from gradfix.report.json import render as findings_as_json

if TYPE_CHECKING:
    from gradfix.health.checked import Checked, Health, Starved
    from gradfix.outcome import View


def render(health: Health, stream: TextIO, view: View) -> None:
    """Write one object."""
    json.dump(fields(health, view), stream, indent=2)
    stream.write("\n")


def fields(health: Health, view: View) -> dict[str, Any]:
    """The report as plain values."""
    text = StringIO()
    findings_as_json(health.run, text, view)
    return {
        "could_not_run": health.broken or None,
        "seconds": round(health.seconds, 1),
        "counts": {"modules": len(health.modules), **dict(sorted(health.counts.items()))},
        "modules": [_module(one) for one in health.modules],
        "findings": json.loads(text.getvalue()),
        "failures": [
            {"filename": outcome.path, "stage": failure.stage, "reason": failure.reason}
            for outcome, failure in health.run.failed()
        ],
    }


def _module(module: Checked) -> dict[str, Any]:
    return {
        "filename": module.path,
        "name": module.name,
        "row": module.line,
        "state": module.state,
        "reason": module.reason or None,
        "parameters": module.parameters,
        "reached": module.reached,
        "without_gradient": _starved(module.starved),
        "by_output": [{"output": one.output, "without_gradient": _starved(one.cut)} for one in module.apart],
        "broken": [
            {
                "code": one.code or None,
                "name": one.kind,
                "filename": one.path,
                "row": one.line,
                "message": one.message,
            }
            for one in module.broken
        ],
        "assumed": list(module.assumed),
        "driver": module.driver or None,
    }


def _starved(starved: Sequence[Starved]) -> list[dict[str, str]]:
    return [{"name": one.name, "why": one.why, "message": one.says} for one in starved]
