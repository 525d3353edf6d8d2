"""The modules of other people's projects: which can be built and run, and what stops the rest."""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver, Target, Undriven
from gradfix.driver.targets import modules
from gradfix.verify import Launcher, Limits


@dataclass(frozen=True, slots=True)
class Stopped:
    """A module that was not run."""

    project: str
    place: str
    """File and class."""
    reason: str
    tries: int


@dataclass(slots=True)
class Tally:
    """One project's modules."""

    project: str
    ran: list[str] = field(default_factory=list)
    stopped: list[Stopped] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def modules(self) -> int:
        return len(self.ran) + len(self.stopped)


def chosen(folder: Path, names: Path | None) -> list[Path]:
    """The projects below a folder: all of them, or those that a file lists."""
    listed = names.read_text().split() if names else sorted(path.name for path in folder.iterdir())
    return [folder / name for name in listed]


def targets(project: Path) -> Iterator[list[Target]]:
    """The modules of a project, file by file."""
    for path in sorted(project.rglob("*.py")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            continue
        if found := modules(str(path.absolute()), tree):
            yield found


def sampled(files: Iterable[list[Target]], most: int, seed: str) -> list[list[Target]]:
    """No more modules than these, drawn by chance; 0: all."""
    whole = list(files)
    flat = [(number, target) for number, found in enumerate(whole) for target in found]
    if not most or len(flat) <= most:
        return whole
    drawn = Random(seed).sample(range(len(flat)), most)
    kept: dict[int, list[Target]] = {}
    for number, target in (flat[index] for index in sorted(drawn)):
        kept.setdefault(number, []).append(target)
    return list(kept.values())


def survey(project: Path, launcher: Launcher, most: int = 0, seed: int = 1) -> Tally:
    """Build and run every module of a project, or some of them."""
    tally, start = Tally(project.name), time.monotonic()
    maker = Maker(launcher, Limits())
    for found in sampled(targets(project), most, f"{project.name} {seed}"):
        for target, made in zip(found, maker.made(found), strict=True):
            note(tally, project, target, made)
    tally.seconds = time.monotonic() - start
    return tally


def note(tally: Tally, project: Path, target: Target, made: Driver | Undriven) -> None:
    place = f"{Path(target.path).relative_to(project.absolute())}:{target.line} {target.name}"
    if isinstance(made, Driver):
        tally.ran.append(place)
    else:
        tally.stopped.append(Stopped(project.name, place, made.reason, made.tries))


def table(tallies: Sequence[Tally]) -> str:
    """Each project's share, and that of all modules."""
    rows = [row(one.project, one.modules, len(one.ran), one.seconds) for one in tallies]
    found, ran = sum(one.modules for one in tallies), sum(len(one.ran) for one in tallies)
    seconds = sum(one.seconds for one in tallies)
    head = f"{'project':40}{'modules':>9}{'ran':>7}{'share':>8}{'seconds':>9}"
    return "\n".join([head, *rows, row(f"{len(tallies)} projects", found, ran, seconds)])


def row(name: str, found: int, ran: int, seconds: float) -> str:
    return f"{name:40}{found:9}{ran:7}{ran / max(found, 1):8.0%}{seconds:9.1f}"
