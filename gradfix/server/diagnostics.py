"""Findings as diagnostics: what an editor underlines, with the evidence beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import attrs
from lsprotocol.types import (
    CodeDescription,
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    Location,
)

from gradfix.defects import Evidence
from gradfix.explain import address
from gradfix.outcome import Outcome
from gradfix.report.wording import severity, told
from gradfix.rule import Finding
from gradfix.server.positions import Ruler

SOURCE = "gradfix"
SEVERITIES = {
    "error": DiagnosticSeverity.Error,
    "warning": DiagnosticSeverity.Warning,
    "note": DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Texts:
    """Where places are: the text of the document, and those of other files."""

    uri: str
    ruler: Ruler
    elsewhere: Callable[[str], tuple[str, Ruler]]
    """The address and the lines of another file, by its path."""


def diagnostics(outcome: Outcome, texts: Texts, related: bool) -> list[Diagnostic]:
    """A diagnostic for each finding; `related`: whether the editor shows evidence by itself."""
    return [_diagnostic(finding, texts, related) for finding in outcome.findings]


def doubts(outcome: Outcome, texts: Texts) -> list[Diagnostic]:
    """A diagnostic for each comment that may not silence what was meant."""
    return [
        Diagnostic(
            range=texts.ruler.found(comment.line, comment.text),
            message=f"`{comment.text}`: {comment.doubt}",
            severity=DiagnosticSeverity.Warning,
            source=SOURCE,
        )
        for comment in outcome.doubtful_suppressions
    ]


def _diagnostic(finding: Finding, texts: Texts, related: bool) -> Diagnostic:
    page = address(finding.rule)
    shown = Diagnostic(
        range=texts.ruler.range(finding.span),
        message=f"{told(finding)} [{finding.impact}, {finding.certainty}]",
        severity=SEVERITIES[severity(finding)],
        code=finding.code,
        code_description=CodeDescription(page) if page else None,
        source=SOURCE,
    )
    evidence = list(_evidence(finding, texts))
    if related:
        return attrs.evolve(shown, related_information=evidence or None)
    return attrs.evolve(shown, message="\n".join([shown.message, *map(_line, evidence)]))


def _evidence(finding: Finding, texts: Texts) -> Iterator[DiagnosticRelatedInformation]:
    for step in finding.evidence:
        yield DiagnosticRelatedInformation(_location(step, texts), step.says)


def _location(step: Evidence, texts: Texts) -> Location:
    if step.path is None:
        return Location(texts.uri, texts.ruler.range(step.span))
    uri, ruler = texts.elsewhere(step.path)
    return Location(uri, ruler.range_in_bytes(step.span))


def _line(evidence: DiagnosticRelatedInformation) -> str:
    return f"line {evidence.location.range.start.line + 1}: {evidence.message}"
