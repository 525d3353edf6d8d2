"""Hand-made runs for the tests of the reports: findings placed by the source text that they speak of."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from gradfix.defects import Assumption, Evidence, Role, Span
from gradfix.defects.reasons import Reason, What
from gradfix.outcome import Failure, Outcome, RuleCard, Run, View
from gradfix.report.show import load
from gradfix.rule import Finding, Safety, TextEdit

BLOCK = """\
import torch.nn.functional as F


class Block(nn.Module):
    def forward(self, x, shortcut):
        out = F.relu(self.bn(x))
        out += shortcut
        return out
"""


def span(source: str, part: str) -> Span:
    """The span of the first place where `part` stands, columns in characters."""
    start = source.index(part)
    before, inside = source[:start], source[: start + len(part)]
    return Span(
        before.count("\n") + 1,
        start - (before.rfind("\n") + 1),
        inside.count("\n") + 1,
        len(inside) - (inside.rfind("\n") + 1),
    )


def overwritten(
    source: str = BLOCK,
    culprit: str = "out += shortcut",
    saved: str = "F.relu(self.bn(x))",
    subjects: tuple[str, str] = ("", ""),
) -> Finding:
    """A finding of GF101 with a safe fix."""
    place = span(source, culprit)
    mended = "out = out + shortcut"
    return Finding(
        code="GF101",
        rule="inplace_overwrites_saved",
        message="`out += shortcut` overwrites what relu saved",
        span=place,
        evidence=(
            Evidence(span(source, saved), Role.SAVED_BY if subjects[0] else Role.SAVED, None, subjects[0]),
            Evidence(place, Role.SAVED_BY if subjects[1] else Role.OVERWRITTEN, None, subjects[1]),
        ),
        certainty="certain",
        impact="crashes",
        torch_says="modified by an inplace operation",
        safety=Safety.SAFE,
        says=mended,
        edits=(TextEdit(place.line, place.column + 1, place.end_line, place.end_column + 1, mended),),
    )


def suspected(finding: Finding) -> Finding:
    """The same finding, as long as two things aren't known of it."""
    argument = Reason(What.ARGUMENT, "net", Span(5, 22, 5, 23))
    return replace(
        finding,
        certainty="suspect",
        assumptions=(Assumption.NOBODY_ELSE_FILLS.value,),
        unknowns=(
            Reason(What.ATTRIBUTE, "`head`", of=argument),
            Reason(What.CALLED, "`prepare`", Span(3, 0, 3, 4), "models/other.py"),
            Reason(What.BUDGET, "the rest of this file"),
        ),
    )


def by_hand(finding: Finding, advice: str) -> Finding:
    """The same finding without a fix."""
    return replace(finding, safety=None, says="", edits=(), decline=advice)


def outcome(findings: Sequence[Finding], source: str = BLOCK, path: str = "models/resnet.py") -> Outcome:
    """What a file with these findings comes to: the safe fixes leave nothing behind."""
    safe = tuple(finding for finding in findings if finding.safety is Safety.SAFE)
    left = tuple(finding for finding in findings if finding.safety is not Safety.SAFE)
    return Outcome(path, tuple(findings), source.encode(), remaining=left, applied=safe)


def broken(path: str = "bad.py", line: int | None = 3) -> Outcome:
    """A file that could not be parsed."""
    return Outcome(path, failure=Failure("parse", "invalid syntax", line))


CARD = RuleCard(
    "GF101", "inplace_overwrites_saved", "Out of place.", "Out of place.\n\nMore.", Safety.SAFE, True
)


def rendered(name: str, *outcomes: Outcome, view: View | None = None) -> str:
    """What a format prints for these files."""
    stream = io.StringIO()
    load(name).render(Run(outcomes, rules=lambda: (CARD,)), stream, view or View())
    return stream.getvalue()
