"""Holds the run of a text beside that of its rewrite, and says what a fix may not do."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, takewhile, zip_longest

from wild.judge import OF_AUTOGRAD

from gradfix.defects.kinds import Family, kind_of
from gradfix.rule import Finding

from .holding import Array, same
from .playing import Moment, Play

RIGHT, UNDECIDED = "right", "undecided"
BREAKS, VALUE, LEFT, CHANGED, OTHER = "breaks", "value", "left", "changed", "other gradient"
WRONG = (BREAKS, VALUE, LEFT, CHANGED, OTHER)
STEPS = frozenset({"step_before_backward", "zero_grad_before_step"})
"""Where a step may come later."""
OWN = re.compile(
    "refer to a single memory location|Can't detach views in-place"
    r"|change requires_grad flags of leaf variables\.$"
)
"""Faults of the random programs that no rule is about."""
LAYOUT = "view size is not compatible with input tensor's size and stride"
"""The same where a rewrite makes nothing whose layout another could meet."""
NUMBER = "'float' object has no attribute 'backward'"
"""What Python says of a loss that lost its graph where it became a number."""
ANYBODY = frozenset(
    {"write_through_data", "step_before_backward", "requires_grad_misspelt", "clip_before_unscale"}
)
"""Where all leaves may have lost something."""


@dataclass(frozen=True)
class Said:
    """A verdict, and what it is about."""

    verdict: str
    about: str = ""


@dataclass(frozen=True)
class Parting:
    """Where two runs part first: the moment's sort, and the names that differ."""

    sort: str
    names: frozenset[str]
    stepped: bool = False
    """Whether a step was made before it."""
    drifted: frozenset[str] = frozenset()
    """What was not quite the same before it any more."""


def differing(before: Play, after: Play, one: Moment, other: Moment) -> frozenset[str]:
    """The names with another value, of those that anybody still reads."""
    mine, theirs = one.values, other.values
    names = frozenset(name for name in mine.keys() & theirs.keys() if not same(mine[name], theirs[name]))
    if one.sort == "gradient":
        return names | frozenset(mine.keys() ^ theirs.keys())
    if one.sort == "step":
        return names
    return frozenset(n for n in names if alive(before, n, one) or alive(after, n, other))


def alive(run: Play, name: str, moment: Moment) -> bool:
    """Whether anybody may still read a value: from its name later, or from what holds it."""
    if name not in moment.own or name in run.leaves:
        return True
    return run.reads.later(name, moment.at)


def parting(before: Play, after: Play) -> Parting | None:
    """The first moment of a run that has another one in its place."""
    left: Counter[str] = Counter()
    mine = before.moments[: before.failed or None] if before.error else list(before.moments)
    while before.error and mine and mine[-1].sort == "end":
        mine.pop()
    drifted: set[str] = set()
    theirs: dict[str, list[Moment]] = {}
    for moment in after.moments:
        theirs.setdefault(moment.sort, []).append(moment)
    for moment in mine:
        place = left[moment.sort]
        left[moment.sort] += 1
        others = theirs.get(moment.sort, [])
        if place >= len(others) and after.error:
            return None
        if place >= len(others):
            return Parting("missing " + moment.sort, frozenset(moment.values))
        names = differing(before, after, moment, others[place])
        if names:
            return Parting(moment.sort, names, stepped_before(after, others[place]), frozenset(drifted))
        drifted |= drifting(moment, others[place])
    if not before.error and any(len(others) > left[sort] for sort, others in theirs.items() if sort != "end"):
        return Parting("more", frozenset())
    return None


def drifting(one: Moment, other: Moment) -> set[str]:
    """The names whose values differ by no more than rounding would, and may by more later on."""
    both = one.values.keys() & other.values.keys()
    return {name for name in both if one.values[name].tobytes() != other.values[name].tobytes()}


def stepped_before(run: Play, moment: Moment) -> bool:
    return any(each.sort == "step" for each in takewhile(lambda each: each is not moment, run.moments))


def values(before: Play, after: Play, *, reduced: bool = False) -> str:
    """A name that had another value before the first backward; "" where none had.

    `reduced`: what has several elements may be one number instead, their sum or mean.
    """
    early = bool(before.error) and not any(moment.sort == "begin" for moment in before.moments)
    for name in before.history.keys() & after.history.keys():
        mine, theirs = before.history[name], after.history[name]
        if reduced:  # a value that is only reduced is the same value still
            mine, theirs = once(mine), once(theirs)
        pairs = list(zip_longest(mine, theirs))
        if early or after.error:
            pairs = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
        if not all(agree(one, other, reduced) for one, other in pairs):
            return name
    return ""


def once(found: list[Array]) -> list[Array]:
    """Values one after the other, without those that agree with the one before."""
    return [each for was, each in zip([None, *found], found, strict=False) if not agree(was, each, True)]


def agree(one: Array | None, other: Array | None, reduced: bool) -> bool:
    if one is None or other is None:
        return False
    whole = reduced and one.size > 1 and other.size == 1
    number = one.size == 1 == other.size  # what it does to the shapes of others shows in those
    return (
        same(one.reshape(()), other.reshape(()))
        if number
        else same(one, other)
        or (whole and any(same(each.reshape(()), other.reshape(())) for each in (one.sum(), one.mean())))
    )


def judged(finding: Finding, source: str, before: Play, after: Play, spared: Play | None) -> Said:
    """What torch says of the rewrite of one finding; `spared`: the run in which no write hurts."""
    shown = crash(finding, source, before)
    if after.error and OWN.search(after.error[0]):
        return Said(UNDECIDED, "the program has a fault of its own")
    if after.error and LAYOUT in after.error[0] and finding.rule == "non_scalar_backward":
        return Said(UNDECIDED, "the program has a fault of its own")
    if after.error and not before.error:
        return Said(BREAKS, after.error[0])
    if name := values(before, after, reduced=finding.rule == "non_scalar_backward"):
        return Said(VALUE, name)
    if before.error and after.error and like(before.error) == like(after.error) and shown:
        return Said(LEFT, before.error[0])
    parted = parting(before, after)
    if parted is not None and before.error and not shown and nothing_yet(finding, before, parted):
        return Said(UNDECIDED, "another defect ends it before anything is lost")
    if parted is not None and not explained(finding, source, (before, after), parted, shown):
        return Said(CHANGED, f"{parted.sort}: {', '.join(sorted(parted.names)[:6])}")
    if after.error and before.error and like(before.error) != like(after.error):
        return Said(BREAKS, after.error[0])
    if parted is None and not before.error and not after.error and finding.rule != "graph_leak":
        return unchanged(finding, before, after)
    if before.error and not shown and parted is None:
        return Said(UNDECIDED, "another defect ends both runs")
    if finding.rule in STEPS and after.idle - (frozenset() if shown else before.idle):
        return Said(LEFT, "a step finds its gradients cleared")
    return arrived(finding, source, before, after, spared) if shown else Said(RIGHT)


def arrived(finding: Finding, source: str, before: Play, after: Play, spared: Play | None) -> Said:
    """Where a crash is gone: whether what comes instead is what was lost."""
    inferred = spared is not None and finding.rule == "forward_in_no_grad"
    if spared is not None and not spared.error and not after.error:
        parted = parting(spared, after)
        if inferred and parted is not None and parted.names <= lost(finding, source, spared):
            return Said(RIGHT)
        learning = {name for moment in spared.moments if moment.sort == "gradient" for name in moment.values}
        if parted is not None and parted.sort != "begin" and (parted.names & learning or not parted.names):
            return Said(OTHER, f"{parted.sort}: {', '.join(sorted(parted.names)[:6])}")
    if kind_of(finding.rule).family is Family.SEVERED and not after.error and not inferred:
        place = sum(moment.sort == "gradient" for moment in before.moments)
        passed = [moment for moment in after.moments if moment.sort == "gradient"][place : place + 1]
        if not passed or not passed[0].values:
            return Said(LEFT, "no gradient arrives")
    return Said(RIGHT)


def like(error: tuple[str, tuple[int, ...]]) -> str:
    """An error's words without its numbers."""
    return re.sub(r"\d+", "", error[0])


def crash(finding: Finding, source: str, run: Play) -> bool:
    """Whether a run ended as a finding says."""
    if run.error is None or finding.impact != "crashes":
        return False
    number = kind_of(finding.rule).family is Family.SEVERED and NUMBER in run.error[0]
    said = number or (finding.torch_says and finding.torch_says in run.error[0])
    if not (said or OF_AUTOGRAD.search(run.error[0])):
        return False
    named = said or not finding.torch_says
    elsewhere = all(line > source.count("\n") for line in run.error[1])
    return bool(named) and (
        elsewhere or bool(set(run.error[1]) & near(finding)) or at_its_source(finding, run)
    )


def at_its_source(finding: Finding, run: Play) -> bool:
    """Whether what is rewritten is what a loss is made with, which more than one backward gets."""
    lines = [edit.line for edit in finding.edits]
    ended = run.error[1] if run.error is not None else ()
    reduced = finding.rule == "non_scalar_backward" and bool(lines) and bool(ended)
    return reduced and max(lines) < min(finding.span.line, ended[-1])


def near(finding: Finding) -> set[int]:
    spans = [finding.span, *(step.span for step in finding.evidence)]
    return {line for span in spans for line in range(span.line, span.end_line + 1)}


def nothing_yet(finding: Finding, run: Play, parted: Parting) -> bool:
    """Whether a run was too short for these gradients to add up or to be erased."""
    late = finding.rule in ("missing_zero_grad", "zero_grad_before_step") and parted.sort == "step"
    return late and not parted.names & (run.stale | run.erased)


def all_steps(before: Play, after: Play) -> bool:
    """Whether each step of a run is made in the other one too, however late."""
    made = [each.values for each in after.moments if each.sort == "step"]
    return all(
        any(one.values.keys() == two.keys() and all(same(one.values[n], two[n]) for n in two) for two in made)
        for one in before.moments
        if one.sort == "step"
    )


def unchanged(finding: Finding, before: Play, after: Play) -> Said:
    """Where nothing differs: a defect is left if it shows in both runs, or no graph has grown."""
    if finding.span.line not in before.lines:
        return Said(UNDECIDED, "its line is not run")
    if finding.impact == "crashes":
        return Said(UNDECIDED, "its line does not fail")
    if finding.rule == "missing_zero_grad":
        return Said(LEFT, "stale") if before.stale & after.stale else Said(UNDECIDED, "nothing was stale")
    if finding.rule == "zero_grad_before_step":
        return Said(LEFT, "erased") if before.erased & after.erased else Said(UNDECIDED, "nothing was erased")
    if kind_of(finding.rule).family is not Family.SEVERED or finding.rule == "grad_of_non_leaf":
        return Said(UNDECIDED, "nothing differs")
    pairs = zip(before.moments, after.moments, strict=False)
    return Said(RIGHT) if any(one.nodes != other.nodes for one, other in pairs) else Said(LEFT, "no graph")


def explained(finding: Finding, source: str, runs: tuple[Play, Play], parted: Parting, shown: bool) -> bool:
    """Whether the leaves that part first are among those that have lost something."""
    before, after = runs
    both = before.leaves & after.leaves  # what was no leaf, or is none any more, had none or needs none
    if shown:
        if finding.rule in ("no_leaf_requires_grad", "grad_of_non_leaf") and parted.sort == "gradient":
            return not parted.names & both
        if kind_of(finding.rule).family is Family.SEVERED and parted.sort in ("gradient", "step"):
            return parted.names & both <= lost(finding, source, before)
        if finding.rule == "non_scalar_backward":
            return parted.sort == "begin"
        if finding.rule == "backward_twice" and parted.sort == "begin":
            return parted.names <= before.leaves and all_steps(before, after)
        moved = finding.rule in ("step_before_backward", "inplace_overwrites_saved") and parted.sort in (
            "begin",
            "end",
            "step",
        )
        later = parted.stepped and parted.sort == "begin" and finding.rule == "step_before_backward"
        looked = parted.sort in ("begin", "end")
        return moved and (not looked or later or parted.names <= before.leaves | after.leaves)
    if parted.sort == "missing step":
        return False
    if finding.rule in ANYBODY:
        return bool(parted.names)
    names = parted.names & before.leaves if parted.sort in ("begin", "end") else parted.names
    if finding.rule == "grad_of_non_leaf":
        return not names & both
    if finding.rule == "missing_zero_grad" and not names:
        return bool(before.stale)  # somebody keeps what he reads of the gradients
    if kind_of(finding.rule).family is Family.SEVERED:
        nameless = any(name.startswith("free") for name in parted.names)  # one of them, under two names
        new = after.leaves - before.leaves
        names &= both | (new & lost(finding, source, before) if nameless else new)
    found = lost(finding, source, before)
    return names <= found if names else bool(parted.drifted & found)


def lost(finding: Finding, source: str, run: Play) -> frozenset[str]:
    """The leaves that a run shows to have lost what a finding is about."""
    if finding.rule == "missing_zero_grad":
        return frozenset(run.stale)
    if finding.rule == "zero_grad_before_step":
        return frozenset(run.erased)
    if finding.rule == "leaf_rebound":
        return frozenset(run.leaves)
    where = covered(source, near(finding))
    behind = [leaves for lines, leaves in run.cuts if where.intersection(lines)]
    if finding.rule == "unreached_parameters":
        reached = {name for moment in run.moments if moment.sort == "gradient" for name in moment.values}
        behind = [leaves for leaves in behind if leaves - reached]
    return frozenset[str]().union(*behind)


def covered(source: str, lines: Iterable[int]) -> set[int]:
    """These lines, and all of the blocks that begin on one of them."""
    found = set(lines)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.With, ast.FunctionDef)):
            heads = {node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))}
            if heads & found:
                found |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return found | unrecorded(source, found)


def unrecorded(source: str, lines: set[int]) -> set[int]:
    """What follows a `torch.set_grad_enabled(...)` on one of these lines, up to the next one."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    switches = sorted(node.lineno for node in calls if "set_grad_enabled(" in ast.unparse(node))
    pairs = pairwise([*switches, source.count("\n") + 2])
    return {line for start, end in pairs if start in lines for line in range(start, end)}
