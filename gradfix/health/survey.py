"""Builds and runs the modules of a project one by one, within a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gradfix import files
from gradfix.driver.making import Maker
from gradfix.driver.recipe import Driver, Recipe, Target, Undriven
from gradfix.driver.targets import modules
from gradfix.driver.written import program
from gradfix.health.checked import Checked, Health
from gradfix.health.reading import Reader
from gradfix.outcome import Run
from gradfix.source import Source, parse
from gradfix.trace.report import Recording
from gradfix.verify import Command, Launcher, Limits
from gradfix.verify.launch import Job

SPENT = "the time for all runs is used up (--time-limit)"
STAGES = {
    "import": "its file can't be imported",
    "build": "it could not be built by what was tried",
    "call": "it could not be called with what was tried",
}
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a survey may go."""

    limits: Limits
    seconds: float
    """For all runs together."""


def survey(run: Run, launcher: Launcher, bounds: Bounds, start: Callable[[int], Advance]) -> Health:
    """The health of the files of a run."""
    began = time.monotonic()
    by_file = {outcome.path: targets(outcome.path) for outcome in run.outcomes if not outcome.failure}
    advance = start(sum(map(len, by_file.values())))
    if not launcher.started():
        return Health(run, (), 0.0, launcher.python, launcher.broken)
    surveyor = Surveyor(launcher, bounds, reader(run), began + bounds.seconds)
    checked: list[Checked] = []
    for path, found in by_file.items():
        for one in surveyor.file(path, found):
            checked.append(one)
            advance(1)
    return Health(run, tuple(checked), time.monotonic() - began, launcher.python)


def reader(run: Run) -> Reader:
    """What reads the runs, with all that was found by reading."""
    found = {os.path.abspath(outcome.path): outcome.findings for outcome in run.outcomes}
    return Reader(found, {card.name: card.code for card in run.rules()})


def targets(path: str) -> list[Target]:
    """The modules of a file."""
    content = files.read(path) if path.endswith(".py") else b""
    found = parse(path, content) if isinstance(content, bytes) and content else None
    return modules(os.path.abspath(path), found.tree) if isinstance(found, Source) else []


class Surveyor:
    """Goes through the files as long as there is time."""

    def __init__(self, launcher: Launcher, bounds: Bounds, reader: Reader, until: float) -> None:
        self.launcher = launcher
        self.limits = bounds.limits
        self.reader = reader
        self.until = until
        self.maker = Maker(launcher, bounds.limits)

    def file(self, path: str, found: Sequence[Target]) -> Iterator[Checked]:
        """The modules of one file."""
        spent = time.monotonic() > self.until
        made = [Undriven(one, SPENT) for one in found] if spent else self.maker.made(found)
        for one in made:
            if isinstance(one, Undriven):
                yield Checked(path, one.target.name, one.target.line, "not run", told(one.reason))
            else:
                yield self.module(path, one)

    def module(self, path: str, driver: Driver) -> Checked:
        """One module, run once under the recorder."""
        once = alone(driver)
        checked = self.reader.checked(once, path, self._run(once))
        roots = once.recipe.roots
        if len(roots) < 2 or not checked.reached:
            return checked
        each = [
            (root.path, alone(replace(driver, recipe=replace(driver.recipe, roots=(root,)))))
            for root in roots
        ]
        apart = [self.reader.apart(output, checked, self._run(one)) for output, one in each]
        return replace(checked, apart=tuple(one for one in apart if one.cut))

    def _run(self, driver: Driver) -> Recording:
        texts: Mapping[str, bytes] = {driver.path: driver.text.encode()}
        job = Job(Command("script", driver.path), driver.recipe.target.root, texts, self.limits)
        return self.launcher.run(job)


def told(reason: str) -> str:
    """Where a search came to its end, as a sentence."""
    stage, colon, rest = reason.partition(": ")
    return f"{STAGES[stage]}: {rest}" if colon and stage in STAGES else reason


def alone(driver: Driver) -> Driver:
    """The same with one turn: what is kept between two calls may be let go by somebody who isn't there."""
    recipe: Recipe = replace(driver.recipe, repeats=1)
    return replace(driver, recipe=recipe, text=program(recipe))
