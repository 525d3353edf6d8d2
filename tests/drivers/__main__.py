"""`python -m tests.drivers cutoff`, `... modules FOLDER`, `... bugs FOLDER`: the bars of what drives itself.

`cutoff` judges the project's own fixtures without their drivers. `modules` builds and runs the modules of the
projects in a folder, `bugs` puts bugs into their files; `--python` names what has all that these import.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from drivers import bugs, cutoff, stops, wild
from gradfix.verify import Launcher


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    return {"cutoff": without_drivers, "modules": of_others, "bugs": with_bugs}[options.bar](options)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.drivers", description=__doc__)
    parser.add_argument("bar", choices=("cutoff", "modules", "bugs"))
    parser.add_argument("folder", nargs="?", type=Path, help="where the projects are, each in its folder")
    parser.add_argument("--names", type=Path, help="a file that lists which of them")
    parser.add_argument("--python", help="what runs them")
    parser.add_argument("--most", type=int, default=0, help="modules of a project, drawn by chance; 0: all")
    parser.add_argument("--bugs", type=int, default=100, help="how many bugs are put in")
    parser.add_argument("--each", type=int, default=bugs.OF_ONE, help="of one project, no more than so many")
    parser.add_argument("--cases", type=Path, help="keep the bugs here; once they are there, judge those")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stops", type=Path, help="a file for what stopped the rest")
    return parser.parse_args(arguments)


def without_drivers(options: argparse.Namespace) -> int:
    """Both tables, and each fixture of which something else is said than is right."""
    wrong = 0
    for sort in ("before", "keep"):
        with tempfile.TemporaryDirectory() as folder:
            found = list(cutoff.said(sort, Path(folder)))
        print(f"{sort}.py without its driver\n{cutoff.table(found)}\n")
        off = [one for one in found if (one.word in cutoff.SEEN) == (sort == "keep")]
        print("\n".join(map(shown, off)), "\n")
        wrong += sum(not one.listed for one in off) if sort == "keep" else 0
    return int(bool(wrong))


def shown(one: cutoff.Said) -> str:
    aside = " (reading lists it too)" if one.listed else ""
    return f"  {one.rule}/{one.name}{aside}: {one.word} ({one.reason})"


def of_others(options: argparse.Namespace) -> int:
    """The share of modules that run, by project, and what stopped the others."""
    tallies = []
    with Launcher(options.python) as launcher:
        for project in wild.chosen(options.folder, options.names):
            tallies.append(wild.survey(project, launcher, options.most, options.seed))
            print(wild.table(tallies[-1:]).splitlines()[1], flush=True)
    stopped = [(f"{one.project}/{one.place}", one.reason) for tally in tallies for one in tally.stopped]
    report = f"\n{wild.table(tallies)}\n\n{stops.table(stopped)}"
    print(report)
    if options.stops:
        options.stops.write_text(report)
    return 0


def with_bugs(options: argparse.Namespace) -> int:
    """What is said of bugs in library files."""
    projects = wild.chosen(options.folder, options.names)
    found = []
    known = options.cases is not None and options.cases.exists()
    cases = (
        bugs.again(options.cases) if known else bugs.cases(projects, options.bugs, options.seed, options.each)
    )
    if options.cases is not None and not known:
        bugs.kept(cases, options.cases)
        return 0
    for case in cases:
        found.append(bugs.judged(case, options.python))
        print(f"{found[-1].fate:15} {found[-1].place}", flush=True)
    print(f"\n{bugs.table(found)}\n")
    print("\n".join(bugs.shown(found)))
    return int(any(one.fate == "wrong" for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
