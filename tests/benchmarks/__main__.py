"""`python -m tests.benchmarks FOLDER...`: what tape and command cost there, compared with parsing alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import command, cost, projects, robust, scaling


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    well = True
    if options.scaling:
        wanted = [s for s in scaling.SCENES if options.scene in s.name]
        print(scaling.table(options.patience, wanted))
    elif options.projects:
        chosen = [one for one in projects.PROJECTS if options.scene in one.name]
        print(projects.table(chosen, options.repeat))
    elif options.start:
        print(command.starts(command.start(max(options.repeat, 3))))
    elif options.again:
        print(command.agains({folder: command.again(folder, options.repeat) for folder in options.folders}))
    elif options.robust:
        text, well = robust.table(options.folders, options.patience)
        print(text)
    else:
        beside = {"command": not options.tape_alone, "torchfix": options.torchfix}
        costs = [cost.cost(f, options.repeat, options.patience, **beside) for f in options.folders]
        print(cost.table(costs, options.slowest))
    return 0 if well else 1


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--scaling", action="store_true", help="synthetic files of growing size instead")
    parser.add_argument("--projects", action="store_true", help="synthetic projects of growing size instead")
    parser.add_argument("--scene", default="", help="only scenes or projects with this in their name")
    parser.add_argument("--robust", action="store_true", help="count how every file ends")
    parser.add_argument("--again", action="store_true", help="time the command where it was before, and ruff")
    parser.add_argument("--start", action="store_true", help="time calls with next to nothing to do")
    parser.add_argument("--repeat", type=int, default=1, help="measure so often, take the best")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds that one file may take")
    parser.add_argument("--slowest", type=int, default=10)
    parser.add_argument("--tape-alone", action="store_true", help="don't time the whole command beside it")
    parser.add_argument("--torchfix", action="store_true", help="time TorchFix beside it, where installed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
