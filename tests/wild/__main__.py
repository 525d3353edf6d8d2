"""`python -m tests.wild --programs N --seed S`: the table, and the smallest program of each disagreement."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .arena import warm
from .campaign import FALSE, Case, Tally, one, shrunk


def main() -> int:
    options = parsed()
    warm()
    tally, started = Tally(), time.time()
    with suppress(KeyboardInterrupt):  # the table of those before
        for seed in range(options.seed, options.seed + options.programs):
            tally.add(one(seed))
            if options.seconds and time.time() - started > options.seconds:
                break
    print(f"{len(range(options.seed, seed + 1))} programs")
    print(table(tally.counts))
    if options.found:
        for case in chosen(tally.cases, options.examples, options.only):
            keep(case, options.found, options.patience)
    return int(any(group.startswith(FALSE) for group in tally.counts))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.wild", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time")
    parser.add_argument("--found", type=Path, help="a folder for the smallest programs")
    parser.add_argument("--only", default="", help="groups that begin with this")
    parser.add_argument("--examples", type=int, default=3, help="programs for each group")
    parser.add_argument("--patience", type=int, default=400, help="how often a program may be made smaller")
    return parser.parse_args()


def table(counts: Counter[str]) -> str:
    return "\n".join(f"{count:7}  {group}" for group, count in sorted(counts.items()))


def chosen(cases: list[Case], many: int, only: str) -> list[Case]:
    """The shortest programs of each group."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        if case.group.startswith(only):
            groups.setdefault(case.group, []).append(case)
    return [case for group in groups.values() for case in sorted(group, key=lambda c: len(c.source))[:many]]


def keep(case: Case, folder: Path, patience: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "_" for letter in case.group)
    calls = "\n".join(f"# call: {' '.join(call)[:100]}" for call in case.calls)
    text = f"# {case.group}\n# seed {case.seed}\n{calls}\n{shrunk(case, patience)}"
    (folder / f"{name}_{case.seed}.py").write_text(text)


if __name__ == "__main__":
    raise SystemExit(main())
