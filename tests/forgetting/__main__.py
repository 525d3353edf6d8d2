"""`python -m tests.forgetting FOLDER --programs 10000 --wild 1000`: what the tape claims only because it
knows less.

Few texts are gone through in all ways, each `--each` times. For millions of lines: `--drawn 2`, with
`--seconds` after which it stops and a file for `--state` from which it goes on.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import sha1
from itertools import chain, islice
from pathlib import Path
from random import Random

from gradfix.neighbours import Neighbours

from .campaign import WAYS, Case, Plan, Tally, forget
from .comparing import ALLOWED, SORTS
from .progress import Progress

Named = tuple[str, bytes]
LONGEST = 500_000
"""Larger files are made by programs, and say little for what they cost."""
SAVED = 20
"""After how many seconds it is said again how far a run is."""
_neighbours = Neighbours()


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    plan = Plan(
        tuple(options.ways.split(",")) if options.ways else WAYS, options.each, options.seed, options.drawn
    )
    texts = chain(
        programs(options.programs, options.seed),
        wild(options.wild, options.seed),
        files(options.folders, options.files, options.seed),
    )
    progress = gone(options, plan, texts)
    tally = progress.tally
    print(summary(tally, plan.ways, progress.seconds))
    shown = [case for case in tally.cases if case.more.sort not in options.hide.split(",")]
    for case in shown[: options.show]:
        print(told(case))
    print("\n".join(tally.crashes))
    return 1 if any(case.more.sort not in ALLOWED for case in tally.cases) or tally.crashes else 0


def gone(options: argparse.Namespace, plan: Plan, texts: Iterable[Named]) -> Progress:
    """All texts, or as many as there is time for, from where an earlier run was cut."""
    progress = Progress.of(options.state)
    ahead = islice(texts, progress.texts, None)
    start = written = time.perf_counter() - progress.seconds
    for one in played(ahead, plan, options.jobs):
        progress.add(one)
        now = time.perf_counter()
        progress.seconds = now - start
        if options.state is not None and now - written > SAVED:
            progress.write(options.state)
            written = now
        if options.seconds and progress.seconds > options.seconds:
            break
    if options.state is not None:
        progress.write(options.state)
    return progress


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.forgetting", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="or files")
    parser.add_argument("--programs", type=int, default=0, help="random programs of tests/oracle")
    parser.add_argument(
        "--wild", type=int, default=0, help="those of tests/wild, each healthy and with a bug"
    )
    parser.add_argument("--files", type=int, default=0, help="no more files than these; 0: all")
    parser.add_argument("--each", type=int, default=2, help="how often a text is blurred in each way")
    parser.add_argument(
        "--drawn", type=int, default=0, help="only so many ways, drawn for each text and gone at once"
    )
    parser.add_argument("--ways", default="", help=f"some of: {','.join(WAYS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="stop after these, with those before")
    parser.add_argument("--state", type=Path, help="go on where this file says, and say there how far it is")
    parser.add_argument("--show", type=int, default=20, help="how many cases are shown")
    parser.add_argument("--hide", default=",".join(SORTS[-2:]), help=f"some of: {','.join(SORTS)}")
    return parser.parse_args(arguments)


def programs(count: int, seed: int) -> Iterator[Named]:
    """Random programs; their generator lies beside this package and needs no torch."""
    if not count:
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from oracle.choose import seeded
    from oracle.programs import program

    for number in range(seed * 10_000_000, seed * 10_000_000 + count):
        yield f"program_{number}.py", program(seeded(number)).source.encode()


def wild(count: int, seed: int) -> Iterator[Named]:
    """Programs of the other generator, as they are and with a bug put in; it needs no torch either."""
    if not count:
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from wild.planting import planted
    from wild.programs import written
    from wild.world import Dice

    for number in range(seed * 10_000_000, seed * 10_000_000 + count):
        source = written(number).source
        yield f"wild_{number}.py", source.encode()
        bug = planted(source, Dice(number * 7))
        if bug is not None:
            yield f"wild_{number}_{bug.bug}.py", bug.source.encode()


def files(folders: Iterable[Path], most: int, seed: int) -> Iterator[Named]:
    """These files and those below some folders in an order drawn at random, each text once."""
    below = (path for folder in folders for path in (folder, *folder.rglob("*.py")))
    found = sorted(path for path in below if path.is_file())
    Random(seed).shuffle(found)
    seen: set[bytes] = set()
    small = (path for path in found if path.stat().st_size <= LONGEST)
    for path in islice(small, most or None):
        content = path.read_bytes()
        if (key := sha1(content).digest()) not in seen:
            seen.add(key)
            yield str(path), content


def played(texts: Iterable[Named], plan: Plan, jobs: int) -> Iterator[Tally]:
    """The tally of each text, in order."""
    work = partial(one, plan)
    if jobs == 1:
        yield from map(work, texts)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(work, texts, chunksize=8)


def one(plan: Plan, named: Named) -> Tally:
    path, content = named
    return forget(path, content, plan, _neighbours)


def summary(tally: Tally, ways: Iterable[str], seconds: float) -> str:
    head = (
        f"{tally.texts} texts of {tally.lines} lines with {tally.findings} findings, "
        f"{tally.played} runs in {seconds:.0f} s"
    )
    titles = f"{'way':20s}{'runs':>9s}" + "".join(f"{sort:>18s}" for sort in SORTS)
    rows = [row(tally, way) for way in ways]
    total = [sum(tally.said[way, sort] for way in ways) for sort in SORTS]
    last = f"{'all':20s}{sum(tally.runs.values()):9d}" + "".join(f"{count:18d}" for count in total)
    return "\n".join([head, "", titles, *rows, last, "", kinds(tally)])


def row(tally: Tally, way: str) -> str:
    return f"{way:20s}{tally.runs[way]:9d}" + "".join(f"{tally.said[way, sort]:18d}" for sort in SORTS)


def kinds(tally: Tally) -> str:
    """The same by rule and by what the finding says that it leans on."""
    counted: dict[tuple[str, str, str], int] = {}
    for case in tally.cases:
        key = (case.more.sort, case.more.defect.kind, case.more.leans)
        counted[key] = counted.get(key, 0) + 1
    most = sorted(counted.items(), key=lambda item: (SORTS.index(item[0][0]), -item[1]))
    return "\n".join(f"{count:6d}  {' · '.join(key)}" for key, count in most)


def told(case: Case) -> str:
    defect = case.more.defect
    chain = ", ".join(f"{each.role} {each.span.line}" for each in defect.evidence)
    what = f"{case.more.sort}: {defect.kind} [{case.more.leans}] {defect.condition}"
    return f"\n{case.path}:{defect.culprit.line}: {what} ({chain})\n    {case.way}: {case.forgotten}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
