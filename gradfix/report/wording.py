"""The phrases that several formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gradfix.defects import Impact
from gradfix.defects.reasons import Reason
from gradfix.rule import Applicability, Finding

IMPACTS: Mapping[Impact, tuple[str, str]] = {
    "crashes": ("crashes", "crash"),
    "trains wrong": ("trains wrong", "train wrong"),
    "wastes memory": ("wastes memory", "waste memory"),
    "style": ("is a matter of style", "are a matter of style"),
}
"""How an impact is said of one finding and of several."""


REMEDIES: Mapping[Applicability, str] = {
    "safe": "safe fix",
    "unsafe": "unsafe fix",
    "suspect": "not fixed",
    "none": "by hand",
}


def plural(count: int, noun: str) -> str:
    """Say a number of things."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def remedy(finding: Finding) -> str:
    """Say in two words what gradfix can do about a finding."""
    return REMEDIES[finding.applicability]


def certainty(finding: Finding) -> str:
    """Say how sure the finding is, with the conventions that it leans on."""
    leaning = f": {', '.join(finding.conventions)}" if finding.certainty == "likely" else ""
    return f"{finding.certainty}{leaning}"


def severity(finding: Finding) -> str:
    """Rank a finding in three steps: what is certain breaks the build, what is style only informs."""
    if finding.impact == "style" or finding.certainty == "suspect":
        return "note"
    return "error" if finding.certainty == "certain" else "warning"


def told(finding: Finding) -> str:
    """Say a finding in one sentence."""
    when = f" (when {finding.condition})" if finding.condition else ""
    return finding.message + when + "".join(f" (if {assumption})" for assumption in finding.assumptions)


def label(finding: Finding) -> str:
    """Say what kind of way out it is."""
    return {"none": "by hand", "suspect": "fix, if so"}.get(finding.applicability, "fix")


def unknown(reason: Reason) -> str:
    """Say what isn't known, where, and what would settle it."""
    return f"{reason.told}; settled by {reason.settled_by}"


def way_out(finding: Finding) -> str:
    """Say the rewrite, with the reason where it is unsafe, or what to do by hand."""
    if finding.safety is None:
        return finding.decline
    return f"{finding.says} (unsafe: {finding.unsafe})" if finding.unsafe else finding.says


def impacts(findings: Iterable[Finding]) -> str:
    """Count findings by what they do to the user: `1 crashes, 2 train wrong`."""
    counts = Counter(finding.impact for finding in findings)
    return ", ".join(
        f"{counts[impact]:,} {words[counts[impact] > 1]}"
        for impact, words in IMPACTS.items()
        if counts[impact]
    )
