"""Broken random programs, and each of their safe fixes by itself before torch."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from oracle.choose import seeded
from oracle.patience import HungError, patience
from oracle.programs import program
from oracle.torchrun import BODIES, assignments, surroundings
from wild.bugs import planted
from wild.judge import OF_AUTOGRAD
from wild.programs import written
from wild.world import Dice

from gradfix.config import Config
from gradfix.defects.kinds import Family, kind_of
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.patch import LineMap, unified
from gradfix.plan import plan_for
from gradfix.rule import Finding, Safety

from .judging import BREAKS, LEFT, RIGHT, UNDECIDED, WRONG, Said, crash, judged, near, parting
from .playing import PROGRAM, Play, play

PLAN = plan_for(Config(Path("/")), follows_imports=False)
MOST = 5
"""So many fixes of one program are judged."""
KEPT = 8
"""So many programs are kept for each group."""
OVERWRITTEN = ("inplace_overwrites_saved", "inplace_module")


@dataclass(frozen=True)
class Circumstances:
    """How a program is run: the words on its command line, or the truth of its flags."""

    argv: tuple[str, ...] = ()
    flags: tuple[bool, ...] | None = None
    driver: str = ""

    def play(self, source: str, *, cuts: bool = False, spared: bool = False) -> Play:
        if self.flags is None:
            return play(source, list(self.argv), cuts=cuts, spared=spared)
        import sys

        with surroundings(self.flags, BODIES["computes"]):
            words = sys.argv[1:]
            return play(source + self.driver, words, cuts=cuts, spared=spared)


@dataclass(frozen=True)
class Broken:
    """A program with a bug, how it is run, and what it was before the bug was put in."""

    source: str
    ways: tuple[Circumstances, ...]
    bug: str = ""
    healthy: str = ""
    further: tuple[Circumstances, ...] = ()
    """How it is run besides, where nothing shows what a fix does."""


@dataclass(frozen=True)
class Case:
    """A safe fix that is none."""

    group: str
    sort: str
    seed: int
    source: str
    line: int
    about: str
    after: str


@dataclass
class Tally:
    """What came out."""

    counts: Counter[str] = field(default_factory=Counter)
    cases: list[Case] = field(default_factory=list)

    def put(self, case: Case) -> None:
        self.counts[case.group] += 1
        if self.counts[case.group] <= KEPT:
            self.cases.append(case)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.cases += [case for case in other.cases if self._few(case.group)]

    def _few(self, group: str) -> bool:
        return sum(case.group == group for case in self.cases) < KEPT


def random_program(seed: int) -> Broken | None:
    """One of the oracle's programs."""
    one = program(seeded(seed))
    ways = tuple(Circumstances((), flags, one.driver) for flags in assignments(one.flags)[:4])
    further = tuple(Circumstances((), ways[0].flags, one.driver + use) for use in uses(one.source))
    return Broken(one.source, ways, further=further)


def uses(source: str) -> list[str]:
    """For each module that a program defines, somebody who trains it."""
    kinds = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    modules = [kind.name for kind in kinds if "nn.Module" in map(ast.unparse, kind.bases)]
    return [f"\n{name}()(torch.randn(3, 4)).sum().backward()\n" for name in modules]


def wild_program(seed: int) -> Broken | None:
    """A whole training with one bug put in."""
    one = written(seed)
    bug = planted(one.source, Dice(seed * 7))
    if bug is None:
        return None
    ways = tuple(Circumstances(tuple(call)) for call in one.calls(Dice(seed), 2))
    return Broken(bug.source, ways, bug.bug, one.source)


SORTS = {"oracle": random_program, "wild": wild_program}


def one(sort: str, seed: int) -> Tally:
    """All safe fixes of one program."""
    tally = Tally()
    broken = SORTS[sort](seed)
    if broken is None:
        return tally
    tally.counts["programs"] += 1
    try:
        with patience():
            _weighed(sort, seed, broken, tally)
    except HungError:
        tally.counts["hung"] += 1
    return tally


def said(text: str, alone: Finding | None = None, others: tuple[Finding, ...] = ()) -> Outcome:
    """What gradfix says of a text, and what it writes when only one finding is to be mended."""
    known = Counter((each.code, each.span.line) for each in others)
    if alone is not None:
        known[alone.code, alone.span.line] -= 1
    return fix(PROGRAM, text.encode(), PLAN, +known)


def _weighed(sort: str, seed: int, broken: Broken, tally: Tally) -> None:
    outcome = said(broken.source)
    if outcome.failure is not None:
        tally.put(Case("failure", sort, seed, broken.source, 0, outcome.failure.reason, ""))
        return
    safe = [each for each in outcome.findings if each.safety is Safety.SAFE and PLAN.applies(each)]
    tally.counts["with safe fixes"] += bool(safe)
    for finding in safe[:MOST]:
        result, after = weighed(broken, outcome, finding)
        tally.counts["safe fixes"] += 1
        tally.counts[result.verdict] += 1
        if result.verdict in WRONG:
            group = f"{result.verdict}: {finding.rule}" + (f" after {broken.bug}" if broken.bug else "")
            tally.put(Case(group, sort, seed, broken.source, finding.span.line, result.about, after))
        elif result.verdict == UNDECIDED:
            tally.counts[f"undecided: {result.about}"] += 1
    if safe and broken.healthy and outcome.after:
        _restored(sort, seed, broken, outcome, safe, tally)


def _restored(
    sort: str, seed: int, broken: Broken, outcome: Outcome, safe: list[Finding], tally: Tally
) -> None:
    """Whether a program is what it was before the bug: the fix that it asks for is known here."""
    text = (outcome.after or b"").decode()
    rules = " ".join(sorted({each.rule for each in safe}))
    for way in broken.ways:
        was, now = way.play(broken.healthy), way.play(text)
        parted = parting(was, now)
        if parted is not None or (now.error and not was.error):
            about = f"{parted.sort}: {', '.join(sorted(parted.names)[:5])}" if parted else str(now.error)
            group = f"not as it was: {rules} after {broken.bug}"
            tally.put(Case(group, sort, seed, broken.source, safe[0].span.line, about, text))
            return
    tally.counts["as it was"] += 1


def weighed(broken: Broken, outcome: Outcome, finding: Finding) -> tuple[Said, str]:
    """One fix by itself; where another defect hides what it does, with all others in place."""
    alone = said(broken.source, finding, outcome.findings)
    after = alone.after.decode() if alone.after is not None else ""
    result = Said(UNDECIDED, "nothing is written for it alone")
    if after:
        result = _over_all(broken, finding, broken.source, after)
    settled = result.verdict not in (UNDECIDED, LEFT, BREAKS)
    settled = settled or (result.verdict == BREAKS and not OF_AUTOGRAD.search(result.about))
    if settled or outcome.after is None or len(outcome.applied) < 2:
        return result, after
    rest = fix(PROGRAM, broken.source.encode(), PLAN, Counter({(finding.code, finding.span.line): 1})).after
    text = broken.source if rest is None else rest.decode()
    moved = [each for each in said(text).findings if _is(each, finding, broken.source, text)]
    if not moved or text == outcome.after.decode():
        return Said(UNDECIDED, result.about or "the others mend it too"), after
    return _over_all(broken, moved[0], text, outcome.after.decode()), outcome.after.decode()


def _is(each: Finding, finding: Finding, before: str, after: str) -> bool:
    lines = LineMap(unified("file", before.encode(), after.encode()))
    return each.rule == finding.rule and lines.after(finding.span.line) == each.span.line


def _over_all(broken: Broken, finding: Finding, before: str, after: str) -> Said:
    """The worst that is said of a fix under any circumstances."""
    found = [_under(way, finding, before, after) for way in broken.ways]
    wrong = [each for each in found if each.verdict in WRONG]
    if wrong:
        # what one way leaves alone may be what another one shows
        real = [each for each in wrong if each.verdict != "left" or each.about]
        if real or all(each.verdict != RIGHT for each in found):
            return (real or wrong)[0]
    shown = next((each for each in found if each.verdict == RIGHT), None)
    further = (_under(way, finding, before, after) for way in broken.further if shown is None)
    return shown or next((each for each in further if each.verdict != UNDECIDED), found[0])


def _under(way: Circumstances, finding: Finding, before: str, after: str) -> Said:
    severed = kind_of(finding.rule).family is Family.SEVERED
    one, other = way.play(before, cuts=severed), way.play(after, cuts=severed)
    inferred = one.error is not None and "nference tensor" in one.error[0]
    hurt = one.error is not None and (finding.rule in OVERWRITTEN or inferred)
    spared = way.play(before, cuts=severed, spared=True) if hurt else None
    result = judged(finding, before, one, other, spared)
    if (
        result.verdict in (LEFT, BREAKS)
        and other.error
        and (any(crash(f, after, other) for f in said(after).findings) or _hindered(before, after, other))
    ):
        return Said(UNDECIDED, "another defect fails in the same words")  # which has no safe fix
    if result.verdict == BREAKS and spared is not None and OF_AUTOGRAD.search(result.about):
        others = way.play(after, spared=True)  # where no write hurts: is it the same program?
        if not others.error and parting(spared, others) is None:
            return Said(UNDECIDED, "another write is still in its way")
    return result


def _hindered(before: str, after: str, run: Play) -> bool:
    """Whether a rewritten text ends as a defect that was seen before, without a safe fix, says."""
    lines = LineMap(unified("file", before.encode(), after.encode()))
    left = [each for each in said(before).findings if each.safety is not Safety.SAFE]
    words = [each for each in left if each.torch_says and run.error and each.torch_says in run.error[0]]
    moved = {lines.after(line) for each in words for line in near(each)}
    return run.error is not None and bool(moved & set(run.error[1]))


def several(sort: str, seeds: Iterable[int]) -> Tally:
    """All safe fixes of some programs."""
    tally = Tally()
    for seed in seeds:
        tally.add(one(sort, seed))
    return tally
