"""What torch says of a program and of each finding: the verdicts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gradfix.defects import Span
from gradfix.rule import Finding, Safety

from .facts import Chain, Facts
from .planting import Planted

Verdict: TypeAlias = Literal["confirmed", "refuted", "undecided", "conventional"]
"""Conventional: torch refutes it in this program, which doesn't keep to the convention on forward, and
confirms it where the program is made to."""
OF_AUTOGRAD = re.compile(
    r"modified by an inplace|modified inplace|leaf Variable|view of a leaf|does not require grad"
    r"|doesn't require grad|grad can be implicitly|second time|[Ii]nference tensor|non-leaf Tensor"
    r"|not to have been used|numpy\(\) on Tensor|in-place operation|and 'NoneType'"
    r"|'NoneType' object has no attribute '(?:zero_|clone|norm|detach|add_|mul_|clamp_|data)'"
    r"|support automatic differentiation|not part of the graph"
)


@dataclass(frozen=True)
class Signs:
    """What is wrong with a program under torch, over all its runs."""

    raises: str = ""
    unreached: int = 0
    stale: bool = False
    wasted: bool = False
    unowned: bool = False

    @property
    def words(self) -> str:
        named = [self.raises and "raises", self.unreached and "unreached", self.stale and "stale"]
        return ", ".join(
            str(word) for word in [*named, self.wasted and "wasted", self.unowned and "unowned"] if word
        )


def signs(runs: list[Facts]) -> Signs:
    errors = [run.error[0] + ": " + run.error[1] for run in runs if run.error]
    whole = [run for run in trained(runs) if not run.error]
    return Signs(
        errors[0] if errors else "",
        unreached(whole),
        any(run.stale for run in whole),
        any(run.wasted for run in whole),
        any(run.unowned for run in whole),
    )


def unreached(runs: list[Facts]) -> int:
    """How many parameters no run's steps ever used a gradient of."""
    count = 0
    for number in range(min((len(run.groups) for run in runs), default=0)):
        count += len(set.intersection(*(set(run.groups[number].unreached) for run in runs)))
    return count


def trained(runs: list[Facts]) -> list[Facts]:
    """The runs but those that only look at a network, as a flag may ask for; all, where no run trains."""
    return [run for run in runs if run.trained or run.error] or runs


def healthy(runs: list[Facts], idle: bool = False) -> bool:
    """Whether a program trains as it was written to: by construction, and by torch.

    An idle one is only to raise nothing.
    """
    if idle:
        return bool(runs) and not any(run.error for run in runs)
    runs = trained(runs)
    lazy = any(
        group.steps == 0 or len(group.unchanged) == len(group.leaves) > 0
        for run in runs
        for group in run.groups
    )
    return bool(runs) and signs(runs) == Signs() and not lazy


def handled(runs: list[Facts]) -> bool:
    """Whether a failure of autograd was raised and had a handler."""
    return any(OF_AUTOGRAD.search(failure[1]) for run in runs for failure in run.caught)


def words(runs: list[Facts]) -> str:
    """The signs of a bug, in words."""
    return ", ".join(filter(None, (signs(runs).words, "handled" if handled(runs) else "")))


def sort(runs: list[Facts], before: list[Facts]) -> str:
    """How a planted bug shows: "" where it does not, "invalid" where it is no bug of autograd."""
    if not runs:
        return "invalid"
    found = signs(runs)
    if found.raises and not OF_AUTOGRAD.search(found.raises):
        return "invalid"
    if found.words or handled(runs):
        return words(runs)
    return "other gradients" if sums(runs) != sums(before) else ""


def forgive(runs: list[Facts], before: list[Facts]) -> None:
    """What a program raises and handles without any bug says nothing of one."""
    usual = {failure[:2] for run in before for failure in run.caught}
    for run in runs:
        run.caught = [failure for failure in run.caught if failure[:2] not in usual]


def sums(runs: list[Facts]) -> list[object]:
    """All gradients of some runs, as numbers that tell them apart."""
    filled = [[(b.reached, [round(s, 5) for s in b.sums]) for b in run.backwards] for run in runs]
    return [*filled, *([round(s, 5) for call in run.asked for s in call] for run in runs)]


def lines(finding: Finding) -> set[int]:
    return _lines(finding.span)


def _lines(span: Span) -> set[int]:
    return set(range(span.line, span.end_line + 1))


def near(finding: Finding) -> set[int]:
    """The lines that a finding names."""
    return lines(finding).union(*(_lines(step.span) for step in finding.evidence))


def judged(finding: Finding, runs: list[Facts], after: list[Facts], planted: Planted) -> Verdict:
    """What torch says of a finding on a program with a planted bug."""
    here = [run for run in trained(runs) if lines(finding) & set(run.lines)]
    if not here:
        return "undecided"
    if finding.impact == "crashes":
        return _crash(finding, here, after)
    special = {
        "missing_zero_grad": _stale,
        "zero_grad_before_step": _erased,
        "unreached_parameters": _untrained,
    }
    if finding.rule in special:
        said = special[finding.rule](finding, here)
        return "undecided" if said == "refuted" and any(run.error for run in runs) else said
    if finding.rule in ("graph_leak", "clip_before_unscale", "requires_grad_misspelt"):
        return "confirmed" if planted.line in near(finding) else "undecided"
    if finding.rule == "optimizer_before_replacement" and _untrained(finding, here) == "confirmed":
        return "confirmed"
    if finding.safety is not Safety.SAFE:
        return "undecided"  # its own fix is not among those that were applied
    return _mending(runs, after)


def _crash(finding: Finding, runs: list[Facts], after: list[Facts]) -> Verdict:
    """Whether it fails in these words, at a line that the finding names, whenever the culprit runs.

    A failure that comes earlier than the one that is named is the same one if the rewrite ends both.
    """
    fits = [_fits(finding, run) for run in runs]
    mended = bool(after) and not any(run.failures for run in after)
    if "other" in fits or (finding.condition and fits.count("silent") == len(fits)):
        return "undecided"
    failed = "right" in fits or ("elsewhere" in fits and mended)
    return "confirmed" if failed and (finding.condition or "silent" not in fits) else "refuted"


def _fits(finding: Finding, run: Facts) -> str:
    """How what was raised fits a finding, whether or not the program had a handler for it."""
    fits = [_fitting(finding, words, where) for _, words, where in run.failures]
    return next((one for one in ("right", "elsewhere", "other") if one in fits), "silent")


def _fitting(finding: Finding, words: str, where: Chain) -> str:
    empty = "NoneType" in words and finding.rule == "grad_of_non_leaf"
    if finding.torch_says and finding.torch_says not in words and not empty:
        return "other"
    return "right" if set(where) & near(finding) else "elsewhere" if finding.evidence else "right"


def _stale(finding: Finding, runs: list[Facts]) -> Verdict:
    at = lines(finding)
    if any(at & set(backward) for run in runs for backward, _ in run.stale):
        return "confirmed"
    meant = [[one for one in run.backwards if at & set(one.lines)] for run in runs]
    left = (any(one.sums) for each in meant for one in each[:-1])  # what a later one would have added to
    return "refuted" if any(left) else "undecided"  # gradients that were zero


def _erased(finding: Finding, runs: list[Facts]) -> Verdict:
    """Whether a step found nothing, or only what came later."""
    at = lines(finding)
    starved = any(at & set(clear) for run in runs for clear, _ in run.starved)
    wasted = any(at & set(clear) for run in runs for lost in run.wasted for clear in lost.erased)
    if starved or wasted:
        return "confirmed"
    lost = (b for run in runs for b in run.backwards if b.read and not b.stepped)  # for a log, perhaps
    looked_at = any(at & set(clear) for b in lost for clear in b.erased)
    return "undecided" if looked_at or any(run.by_hand for run in runs) else "refuted"


def _untrained(finding: Finding, runs: list[Facts]) -> Verdict:
    """Whether a step has left something as it was: no gradient reached it, or nothing but zeros by hand."""
    at = lines(finding)
    groups = [group for run in runs for group in run.groups if at & set(group.lines)]
    left = any(group.unreached or (group.steps and group.unchanged) for group in groups)
    return "confirmed" if left else "refuted"


def _mending(runs: list[Facts], after: list[Facts]) -> Verdict:
    """Whether gradients arrive with the fix that did not arrive without."""
    if not after:
        return "undecided"
    before, now = signs(runs), signs(after)
    if before.raises or now.raises:
        return "confirmed" if before.raises and not now.raises else "undecided"
    return "confirmed" if now.unreached < before.unreached or sums(runs) != sums(after) else "refuted"


def fixed(runs: list[Facts], after: list[Facts]) -> str:
    """What is wrong with a program that has all its safe fixes; "" where nothing is."""
    if not after:
        return "does not end"
    found, was = signs(after), signs(runs)
    if found.raises and OF_AUTOGRAD.search(found.raises):
        if not was.raises:
            return "raises"
        if found.raises == was.raises:
            return "still raises"
    for one, two in zip(runs, after, strict=True):
        failed = one.error is not None and len(one.backwards) == 1
        if (
            one.backwards
            and two.backwards
            and not failed
            and not _same(one.backwards[0].root, two.backwards[0].root)
        ):
            return "another value"
    left = [] if was.raises else [word for word in found.words.split(", ") if word not in was.words]
    if left and not found.raises:
        return f"brings: {', '.join(left)}"
    return ""


def _same(one: float, two: float) -> bool:
    return abs(one - two) <= 1e-4 * max(1.0, abs(one)) or one != one
