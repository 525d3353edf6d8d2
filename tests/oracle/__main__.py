"""`python -m tests.oracle --programs 100000 --seed 1 --jobs 2`: where tape and torch disagree."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from .campaign import Case, Tally, campaign, smallest
from .comparison import Analyser, speechless
from .kept import FOUND, write


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    analyse = analyser(options.torch_only)
    tally, seconds = campaign(options.programs, options.seed, options.jobs, analyse)
    report = summary(tally, seconds)
    if tally.cases and not options.no_shrink:
        small = smallest(tally.cases, analyse, options.each, options.jobs)
        report += "".join(map(shown, small))
        if options.keep:
            keep(small)
    print(report)
    if options.report:
        Path(options.report).write_text(report)
    return 1 if tally.disagreeing or tally.groups else 0


def keep(cases: list[Case]) -> None:
    for case in cases:
        if case.disagreement.sort != "crash":
            write(FOUND, case.disagreement.group, case.program)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--each", type=int, default=3, help="shrunk examples of every group")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument(
        "--torch-only", action="store_true", help="what torch does with the programs, without the tape"
    )
    parser.add_argument("--keep", action="store_true", help="store the shrunk programs in tests/oracle/found")
    parser.add_argument("--report", help="also write the report to this file")
    return parser.parse_args(arguments)


def analyser(torch_only: bool) -> Analyser:
    if torch_only:
        return speechless
    from .tape import tape

    return tape


def summary(tally: Tally, seconds: float) -> str:
    valid = tally.programs - tally.invalid
    rows = [
        f"programs {tally.programs}, invalid {tally.invalid}, "
        f"{tally.programs / seconds:.0f} a second ({seconds:.0f} s)",
        f"agree {valid - tally.disagreeing}, disagree {tally.disagreeing}",
        "",
        table("what torch did", tally.outcomes, valid),
        table("verdicts on defects", tally.verdicts, sum(tally.verdicts.values())),
        table("disagreements", tally.groups, valid),
    ]
    return "\n".join(rows)


def table(title: str, counts: Counter[str], whole: int) -> str:
    rows = [
        f"  {count:7d} {100 * count / max(whole, 1):6.2f} %  {name}" for name, count in counts.most_common()
    ]
    return "\n".join([title, *rows, ""])


def shown(case: Case) -> str:
    disagreement = case.disagreement
    lines = enumerate(case.program.source.rstrip().split("\n"), 1)
    numbered = [f"{n:3d} | {line}" for n, line in lines if line]
    words = [f"torch: {disagreement.words[:150]}"] if disagreement.words else []
    said = [f"tape: {text}" for text in case.defects] or ["tape: nothing"]
    head = f"\n=== {disagreement.group} (line {disagreement.line}, seed {case.seed})"
    behind = [f"    # behind: {line}" for line in case.program.driver.splitlines()]
    return "\n".join([head, *numbered, *behind, *words, *said, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
