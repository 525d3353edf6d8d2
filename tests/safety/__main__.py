"""`python -m tests.safety --programs 20000`: the safe fixes that torch does not find safe.

Half of the programs are those of tests/oracle, half those of tests/wild with a bug put in. `--seconds` stops
a run and `--state` goes on where it was stopped; of each group the smallest program is shown, with its seed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from difflib import unified_diff
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from safety.campaign import SORTS, Case, Tally, several
from safety.forks import forked
from safety.judging import WRONG
from safety.playing import warm
from safety.progress import Progress
from safety.shrinking import shrunk

BATCH = 100
"""So many programs share a process, which one of them may end."""
LONGEST = 120.0
"""Seconds that a program may take by itself; in a batch one takes a few."""
FEW = 8.0


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    warnings.simplefilter("ignore")
    warm()
    progress = gone(options)
    print(summary(progress))
    for case in smallest(progress.tally.cases, options):
        print(shown(case))
    return int(any(progress.tally.counts[verdict] for verdict in (*WRONG, "failure", "hung", "died")))


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.safety", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sorts", default=",".join(SORTS), help=f"some of: {','.join(SORTS)}")
    parser.add_argument("--seconds", type=float, default=0, help="stop after these, with those before")
    parser.add_argument("--state", type=Path, help="go on where this file says, and say there how far it is")
    parser.add_argument("--show", type=int, default=1, help="how many programs of each group are shown")
    parser.add_argument("--only", default="", help="groups that begin with this")
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args(arguments)


def gone(options: argparse.Namespace) -> Progress:
    """All programs, or as many as there is time for, from where an earlier run was cut."""
    first = options.seed * 10_000_000
    progress = Progress.of(options.state, first)
    sorts = options.sorts.split(",")
    start = time.perf_counter() - progress.seconds
    while progress.tally.counts["programs"] < options.programs:
        for sort in sorts:
            progress.tally.add(batch(sort, progress.seed, BATCH))
        progress.seed += BATCH
        progress.seconds = time.perf_counter() - start
        progress.write(options.state)
        if options.seconds and progress.seconds > options.seconds:
            break
    return progress


def batch(sort: str, first: int, many: int) -> Tally:
    """Some programs in a fork; where one of them ends it or hangs, each in a fork of its own."""
    tally = forked(partial(several, sort, range(first, first + many)), LONGEST + FEW * many)
    if tally is not None:
        return tally
    if many == 1:
        return Tally(Counter({"programs": 1, "died": 1}), [Case("died", sort, first, "", 0, "", "")])
    total = Tally()
    for seed in range(first, first + many):
        total.add(batch(sort, seed, 1))
    return total


def summary(progress: Progress) -> str:
    counts = progress.tally.counts
    named = {group: count for group, count in counts.items() if ": " not in group}
    head = f"{counts['programs']} programs up to seed {progress.seed} in {progress.seconds:.0f} s"
    rows = [f"{count:7}  {group}" for group, count in named.items() if group != "programs"]
    groups = sorted((group, count) for group, count in counts.items() if ": " in group)
    return "\n".join([head, *rows, "", *(f"{count:7}  {group}" for group, count in groups)])


def smallest(cases: list[Case], options: argparse.Namespace) -> list[Case]:
    """The smallest programs of each group, made smaller still."""
    groups: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda case: len(case.source)):
        if case.group.startswith(options.only):
            groups.setdefault(case.group, []).append(case)
    chosen = [case for group in sorted(groups) for case in groups[group][: options.show]]
    if options.no_shrink:
        return chosen
    return [case if case.group == "hung" else forked(partial(shrunk, case)) or case for case in chosen]


def shown(case: Case) -> str:
    lines = case.source.splitlines()
    text = [f"{n:3} | {line}" for n, line in enumerate(lines, 1) if line and not line.startswith("import")]
    change = list(unified_diff(lines, case.after.splitlines(), lineterm="", n=1))[2:] if case.after else []
    head = f"\n=== {case.group} (line {case.line}, {case.sort} seed {case.seed}): {case.about}"
    return "\n".join([head, *text, *(f"    {line}" for line in change)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
