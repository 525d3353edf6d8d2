"""Many programs: what gradfix says, what torch says, and where they differ."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from gradfix.config import Config
from gradfix.engine import fix
from gradfix.outcome import Outcome
from gradfix.plan import plan_for
from gradfix.rule import Finding, Safety

from . import judge
from .arena import runs
from .facts import Facts
from .planting import Planted, planted
from .probe import class_at
from .programs import Program, written
from .world import Dice

PLAN = plan_for(Config(Path("/")), follows_imports=False)
CALLS = 3
FALSE = ("failure", "false alarm", "refuted (certain)")
"""The groups that may not be."""
Words = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A program on which gradfix and torch do not agree."""

    group: str
    seed: int
    source: str
    calls: tuple[Words, ...]
    holds: Callable[[str], bool] = field(compare=False)
    """Whether a smaller text shows the same."""


@dataclass
class Tally:
    """What came out."""

    counts: Counter[str] = field(default_factory=Counter)
    cases: list[Case] = field(default_factory=list)

    def put(self, case: Case) -> None:
        self.counts[case.group] += 1
        self.cases.append(case)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.cases += other.cases


def said(source: str) -> Outcome:
    """What gradfix says of a text."""
    return fix("program.py", source.encode(), PLAN)


def one(seed: int) -> Tally:
    """A healthy program and the same with a bug."""
    tally = Tally()
    program = written(seed)
    calls = program.calls(Dice(seed), CALLS)
    before = runs(program.source, calls)
    if not judge.healthy(before, program.idle):
        tally.counts["invalid"] += 1
        return tally
    tally.counts["healthy"] += 1
    _healthy(seed, program, calls, tally)
    if not program.idle:
        _broken(seed, program, calls, before, tally)
    return tally


def _healthy(seed: int, program: Program, calls: list[list[str]], tally: Tally) -> None:
    outcome = said(program.source)
    if outcome.failure:
        tally.put(_case("failure", seed, program.source, calls, lambda text: bool(said(text).failure)))
    for finding in outcome.findings:
        if _conventional(finding, program.source, calls):
            tally.counts[f"conventional ({finding.certainty}), nothing else is wrong"] += 1
            continue
        key = (finding.code, finding.certainty)

        def holds(text: str, key: tuple[str, str] = key) -> bool:
            found = [f for f in said(text).findings if (f.code, f.certainty) == key]
            now = runs(text, calls) if found else []
            reached = any(judge.lines(f) & set(run.lines) for f in found for run in now)
            return reached and judge.healthy(now, program.idle)

        tally.put(
            _case(f"false alarm ({finding.certainty}): {finding.code}", seed, program.source, calls, holds)
        )


def _case(group: str, seed: int, source: str, calls: list[list[str]], holds: Callable[[str], bool]) -> Case:
    return Case(group, seed, source, tuple(tuple(call) for call in calls), holds)


def _broken(seed: int, program: Program, calls: list[list[str]], before: list[Facts], tally: Tally) -> None:
    """The first bug that can be planted and that torch takes for one of autograd."""
    for attempt in range(4):
        dice = Dice(seed * 7 + attempt)
        bug = planted(program.source, dice)
        if bug is None:
            return
        now = runs(bug.source, calls)
        judge.forgive(now, before)
        sort = judge.sort(now, before)
        if sort == "invalid":
            continue
        tally.counts["broken" if sort else "harmless"] += 1
        _weighed(seed, bug, calls, (now, sort), tally)
        if sort:
            return


def _weighed(
    seed: int, bug: Planted, calls: list[list[str]], shown: tuple[list[Facts], str], tally: Tally
) -> None:
    now, sort = shown
    outcome = said(bug.source)
    if outcome.failure:
        tally.put(_case("failure", seed, bug.source, calls, lambda text: bool(said(text).failure)))
    after = runs(outcome.after.decode(), calls) if outcome.after else []
    for finding in outcome.findings:
        verdict = _verdict(finding, bug, (now, after), calls)
        tally.counts[f"{verdict} ({finding.certainty})"] += 1
        if verdict == "refuted":
            key = (finding.code, finding.certainty)
            tally.put(
                _case(
                    f"refuted ({finding.certainty}): {finding.code} after {bug.bug}",
                    seed,
                    bug.source,
                    calls,
                    _refutes(key, calls, bug),
                )
            )
    if not outcome.findings and sort and sort != "other gradients":
        tally.put(_case(f"missed: {bug.bug}, {sort}", seed, bug.source, calls, _misses(sort, calls)))
    elif outcome.findings:
        tally.counts["found"] += bool(sort)
    if outcome.after and all(f.safety is Safety.SAFE for f in outcome.findings):
        wrong = judge.fixed(now, after)
        tally.counts["mended" if not wrong else "not mended"] += 1
        if wrong:
            tally.put(
                _case(
                    f"fix {wrong}: {_codes(outcome)} after {bug.bug}",
                    seed,
                    bug.source,
                    calls,
                    _unmended(wrong, calls),
                )
            )


def _verdict(
    finding: Finding, bug: Planted, shown: tuple[list[Facts], list[Facts]], calls: list[list[str]]
) -> judge.Verdict:
    """What torch says of a finding; of one that leans on convention D, where that is kept to as well."""
    said = judge.judged(finding, *shown, bug)
    if said == "refuted" and "D" in finding.conventions and finding.torch_says:
        words = _probed(finding, bug.source, calls)
        if words is None:
            return "undecided"  # nobody calls it here
        return "conventional" if any(finding.torch_says in one for one in words) else said
    return said


def _conventional(finding: Finding, source: str, calls: list[list[str]]) -> bool:
    """Whether a finding leans on convention D, and torch says so too where that is kept to."""
    if "D" not in finding.conventions or not finding.torch_says:
        return False
    return any(finding.torch_says in one for one in _probed(finding, source, calls) or ())


def _probed(finding: Finding, source: str, calls: list[list[str]]) -> list[str] | None:
    """What torch says where what comes out of the class of a finding is backpropagated; None where nobody
    calls that."""
    name = class_at(source, finding.span.line)
    probes = runs(source, calls[:1], name) if name else []
    words = [run.error[1] for run in probes if run.error and run.error[0] == "Probed"]
    return [one for one in words if one] if words else None


def _codes(outcome: Outcome) -> str:
    return " ".join(sorted({f.code for f in outcome.findings}))


def _refutes(key: tuple[str, str], calls: list[list[str]], bug: Planted) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        outcome = said(text)
        now = runs(text, calls)
        if any(run.error and not judge.OF_AUTOGRAD.search(run.error[1]) for run in now) or not now:
            return False
        after = runs(outcome.after.decode(), calls) if outcome.after else []
        wanted = [f for f in outcome.findings if (f.code, f.certainty) == key]
        planted = replace(bug, source=text)
        return any(_verdict(f, planted, (now, after), calls) == "refuted" for f in wanted)

    return holds


def _misses(sort: str, calls: list[list[str]]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        now = runs(text, calls)
        found = judge.signs(now)
        well = not found.raises or bool(judge.OF_AUTOGRAD.search(found.raises))
        return bool(now) and well and judge.words(now) == sort and not said(text).findings

    return holds


def _unmended(wrong: str, calls: list[list[str]]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        outcome = said(text)
        if not outcome.after:
            return False
        now = runs(text, calls)
        if not now or any(run.error and not judge.OF_AUTOGRAD.search(run.error[1]) for run in now):
            return False
        return judge.fixed(now, runs(outcome.after.decode(), calls)) == wrong

    return holds


def shrunk(case: Case, patience: int = 400) -> str:
    """The program without all statements that the disagreement does not need."""
    text, tried, again = case.source, 0, True
    while again and tried < patience:
        again = False
        for number in range(_statements(text) - 1, -1, -1):
            smaller = _without(text, number)
            tried += 1
            if smaller and smaller != text and tried < patience and case.holds(smaller):
                text, again = smaller, True
    return text


def _bodies(tree: ast.Module) -> list[tuple[list[ast.stmt], int]]:
    return [
        (value, place)
        for node in ast.walk(tree)
        for _, value in ast.iter_fields(node)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt)
        for place in range(len(value))
    ]


def _statements(text: str) -> int:
    return len(_bodies(ast.parse(text)))


def _without(text: str, number: int) -> str:
    tree = ast.parse(text)
    places = _bodies(tree)
    if number >= len(places):
        return ""
    body, place = places[number]
    if len(body) == 1:
        if isinstance(body[0], ast.Pass):
            return ""
        body[place] = ast.Pass()
    else:
        del body[place]
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except ValueError:
        return ""
