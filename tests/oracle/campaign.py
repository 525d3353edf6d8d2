"""Many programs in a row, in forked batches so that a crash costs one batch and is found again."""

from __future__ import annotations

import multiprocessing
import re
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

import torch

from .choose import seeded
from .compare import compare
from .comparison import Analyser, Comparison, Disagreement
from .patience import HungError, patience
from .programs import Program, program
from .shrink import shrink

BATCH = 250
CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Case:
    """A disagreement, the program that shows it and what the tape said of it."""

    seed: int
    program: Program
    disagreement: Disagreement
    defects: tuple[str, ...] = ()


@dataclass
class Tally:
    """What a batch brought, and how batches add up."""

    programs: int = 0
    invalid: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    cases: list[Case] = field(default_factory=list)
    disagreeing: int = 0

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.invalid += other.invalid
        self.disagreeing += other.disagreeing
        self.outcomes.update(other.outcomes)
        self.verdicts.update(other.verdicts)
        self.groups.update(other.groups)
        self.cases += other.cases


def warm() -> None:
    """Pay for torch's slow first times before the forks."""
    torch.set_num_threads(1)
    torch.set_warn_always(True)
    weight = torch.zeros(1, requires_grad=True)
    torch.autograd.backward(weight.sum())
    torch.optim.Adam([weight]).step()


def one(seed: int, analyse: Analyser, tally: Tally) -> None:
    written = program(seeded(seed))
    tally.programs += 1
    try:
        with patience():
            result = compare(written, analyse)
    except (Exception, HungError) as error:
        name = f"{type(error).__name__} in {origin(error)}"
        note(tally, Case(seed, written, Disagreement("crash", name, 0, str(error))))
        return
    if result is None:
        tally.invalid += 1
        return
    settle(seed, result, tally)


def origin(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "gradfix/" in frame.filename] or list(frames)
    return f"{own[-1].filename.rsplit('/', 1)[-1]}:{own[-1].lineno}"


def settle(seed: int, result: Comparison, tally: Tally) -> None:
    tally.outcomes.update(outcome(result))
    tally.verdicts.update(result.verdicts)
    tally.disagreeing += bool(result.disagreements)
    defects = tuple(map(described, result.defects))
    for group in {d.group: d for d in result.disagreements}.values():
        note(tally, Case(seed, result.program, group, defects))


def described(defect: object) -> str:
    kind, culprit = getattr(defect, "kind", "?"), getattr(defect, "culprit", None)
    evidence = ", ".join(f"{e.says} {e.span.line}" for e in getattr(defect, "evidence", ()))
    certainty, condition = getattr(defect, "certainty", ""), getattr(defect, "condition", "")
    line = getattr(culprit, "line", 0)
    return f"{kind} at {line} [{certainty}{', if ' + condition if condition else ''}] ({evidence})"


def note(tally: Tally, case: Case) -> None:
    tally.groups[case.disagreement.group] += 1
    tally.disagreeing += case.disagreement.sort == "crash"
    if tally.groups[case.disagreement.group] <= 12:
        tally.cases.append(case)


def outcome(result: Comparison) -> set[str]:
    """What torch did with the program, in one or a few words."""
    failures = {run.failures[0].key for run in result.runs if run.failures}
    silent = {
        "stale gradient": any(r.stale for r in result.runs),
        "erased gradient": any(r.erased for r in result.runs),
    }
    silent["leaf as root"] = any(r.leaf_roots for r in result.runs)
    return failures or {name for name, seen in silent.items() if seen} or {"healthy"}


def batch(work: tuple[int, int, Analyser]) -> Tally:
    first, count, analyse = work
    tally = Tally()
    for seed in range(first, first + count):
        one(seed, analyse, tally)
    return tally


def campaign(programs: int, seed: int, jobs: int, analyse: Analyser) -> tuple[Tally, float]:
    """All programs, and how many seconds they took."""
    warm()
    start = time.perf_counter()
    first = seed * 10_000_000
    work = [(at, min(BATCH, first + programs - at), analyse) for at in range(first, first + programs, BATCH)]
    total = Tally()
    for tally in batches(work, jobs):
        total.add(tally)
    return total, time.perf_counter() - start


def batches(work: list[tuple[int, int, Analyser]], jobs: int) -> Iterator[Tally]:
    """Each batch in a forked child of its own."""
    running: dict[Connection, tuple[int, int, Analyser]] = {}
    waiting = list(reversed(work))
    while waiting or running:
        while waiting and len(running) < jobs:
            item = waiting.pop()
            running[started(item)] = item
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            item = running.pop(ready)
            try:
                yield ready.recv()
            except EOFError:
                yield died(item)


def started(item: tuple[int, int, Analyser]) -> Connection:
    here, there = CONTEXT.Pipe(duplex=False)
    CONTEXT.Process(target=answer, args=(there, item)).start()
    there.close()
    return here


def answer(pipe: Connection, item: tuple[int, int, Analyser]) -> None:
    pipe.send(batch(item))
    pipe.close()


def died(item: tuple[int, int, Analyser]) -> Tally:
    tally = Tally(programs=item[1])
    case = Case(item[0], Program(""), Disagreement("crash", "the batch died", 0))
    note(tally, case)
    return tally


def shrunk(work: tuple[Case, Analyser]) -> Case:
    case, analyse = work
    if case.disagreement.sort == "crash":
        return case
    small = shrink(case.program, case.disagreement, analyse)
    result = compare(small, analyse)
    if result is None:
        return case
    same = [d for d in result.disagreements if d.group == case.disagreement.group]
    if not same:
        return case
    return Case(case.seed, small, same[0], tuple(map(described, result.defects)))


def smallest(cases: Iterable[Case], analyse: Analyser, each: int, jobs: int) -> list[Case]:
    """A few cases of every group, shrunk; those that shrink to the same form count once."""
    by_group: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda c: len(c.program.source)):
        by_group.setdefault(case.disagreement.group, []).append(case)
    chosen = [(case, analyse) for group in by_group.values() for case in group[: 2 * each]]
    with CONTEXT.Pool(jobs) as pool:
        small = pool.map(shrunk, chosen, chunksize=1)
    unique = {(c.disagreement.group, form(c.program.source)): c for c in small}
    ordered = sorted(unique.values(), key=lambda c: (c.disagreement.group, len(c.program.source)))
    groups: dict[str, list[Case]] = {}
    for case in ordered:
        groups.setdefault(case.disagreement.group, []).append(case)
    return [case for group in groups.values() for case in group[:each]]


def form(source: str) -> str:
    """The text without what tells like programs apart: numbers, sorts of leaves, imports."""
    kept = [line for line in source.split("\n") if line and not line.startswith(("import", "from"))]
    kept = [re.sub(r"(\bloss\d* = ).*", r"\1", line) for line in kept]
    return re.sub(r"\d+|= (torch|nn|Variable)\b.*", "", "\n".join(kept))
