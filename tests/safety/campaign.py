"""Broken random programs, and each of their safe fixes by itself before torch."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from oracle.choose import seeded
from oracle.patience import HungError, patience
from oracle.programs import program
from oracle.torchrun import assignments
from wild.planting import planted
from wild.programs import written
from wild.world import Dice

from gradfix.outcome import Outcome
from gradfix.rule import Finding, Safety

from .judging import UNDECIDED, WRONG, parting
from .weighing import PLAN, Broken, Circumstances, said, weighed

MOST = 5
"""So many fixes of one program are judged."""
PATIENCE = 60.0
"""Seconds of work on one program: it is read a dozen times for each of its fixes."""
KEPT = 8
"""So many programs are kept for each group."""


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
    data = "torch.randn(3, 4, requires_grad=True) * 1"  # what a layer gets
    return [f"\n{name}()({data}).sum().backward()\n" for name in modules]


def wild_program(seed: int) -> Broken | None:
    """A whole training with one bug put in."""
    one = written(seed)
    bug = planted(one.source, Dice(seed * 7))
    if bug is None or hides(bug.source):
        return None
    ways = tuple(Circumstances(tuple(call)) for call in one.calls(Dice(seed), 2))
    return Broken(bug.source, ways, bug.bug, one.source)


def hides(source: str) -> bool:
    """Whether nobody hears of a backward that fails: what a fix mends can't be told from what it changes."""
    tries = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Try) and node.handlers]
    return any(
        ".backward(" in "".join(map(ast.unparse, node.body))
        and not any(isinstance(inner, ast.Raise) for each in node.handlers for inner in ast.walk(each))
        for node in tries
    )


SORTS = {"oracle": random_program, "wild": wild_program}


def one(sort: str, seed: int) -> Tally:
    """All safe fixes of one program."""
    tally = Tally()
    broken = SORTS[sort](seed)
    if broken is None:
        return tally
    tally.counts["programs"] += 1
    try:
        with patience(PATIENCE):
            _weighed(sort, seed, broken, tally)
    except HungError as hung:
        tally.put(Case("hung", sort, seed, broken.source, 0, str(hung), ""))
    return tally


def _weighed(sort: str, seed: int, broken: Broken, tally: Tally) -> None:
    outcome = said(broken.source)
    if outcome.failure is not None:
        tally.put(Case("failure", sort, seed, broken.source, 0, outcome.failure.reason, ""))
        return
    safe = [each for each in outcome.findings if each.safety is Safety.SAFE and PLAN.applies(each)]
    tally.counts["with safe fixes"] += bool(safe)
    for finding in safe[:MOST]:
        result, after = weighed(broken, finding)
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


def several(sort: str, seeds: Iterable[int]) -> Tally:
    """All safe fixes of some programs."""
    tally = Tally()
    for seed in seeds:
        tally.add(one(sort, seed))
    return tally
