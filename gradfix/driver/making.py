"""Asks the interpreter that has torch for a driver of each target."""

from __future__ import annotations

import itertools
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradfix.driver.given import Project
from gradfix.driver.recipe import Driver, Recipe, Target, Undriven, from_json
from gradfix.driver.values import Value, to_json
from gradfix.driver.written import program
from gradfix.trace.report import Recording
from gradfix.verify.launch import Command, Job, Launcher, Limits
from gradfix.verify.verdicts import cannot

TRIES = 400
"""Most of them take a few milliseconds: time is what counts."""
SECONDS = 2.0
SLACK = 20.0
"""For the imports of the project, before the first try."""
MOST_BUSY = 16.0
"""How much longer than on a quiet machine is waited at most."""
TOGETHER = 8
"""Targets of one process: of what it says, only the end is kept."""
SEARCH = "gradfix_search.py"
DRIVER = "gradfix_driver.py"
PROGRAM = "from gradfix.driver.search.main import main\n\nmain({!r})\n"
UNSTEPPED = 1 << 30


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes drivers on a warm interpreter."""

    launcher: Launcher
    limits: Limits = field(default_factory=Limits)
    tries: int = TRIES
    seconds: float = SECONDS
    projects: dict[str, Project] = field(default_factory=dict)
    """What was read of each root."""

    def made(
        self, targets: Sequence[Target], texts: Mapping[str, bytes] | None = None
    ) -> list[Driver | Undriven]:
        """A driver for each target, or why there is none, in their order."""
        found: list[Driver | Undriven] = []
        while len(found) < len(targets):
            wanted = targets[len(found) :][:TOGETHER]
            answers, reason = self._asked(wanted, texts or {})
            found += answers
            if len(answers) < len(wanted):  # what killed the search is not asked for again
                found.append(Undriven(targets[len(found)], reason))
        return found

    def inherited(self, way: Target) -> list[Target]:
        """The same way through classes of other files, which may have what this one leaves open."""
        if way.form == "function":
            return []
        heirs = ((named(path, way.root), name) for path, name in self.project(way.root).heirs(way.name))
        return [
            replace(way, module=module, name=name) for module, name in heirs if module not in ("", way.module)
        ]

    def project(self, root: str) -> Project:
        """What was read of it."""
        if root not in self.projects:
            self.projects[root] = Project(root).read()
        return self.projects[root]

    def _asked(
        self, targets: Sequence[Target], texts: Mapping[str, bytes]
    ) -> tuple[list[Driver | Undriven], str]:
        """The answers of one process, and what became of it."""
        mark, root = secrets.token_hex(), targets[0].root
        limits = {"tries": self.tries, "seconds": self.seconds}
        spec = {"targets": to_json(targets), "mark": mark, "given": self._given(targets), **limits}
        spec["options"] = to_json_of(self.projects[root].options)
        spec["modules"] = list(known_modules(self.projects[root]))
        path = os.path.join(root, SEARCH)
        text = PROGRAM.format(json.dumps(spec)).encode()
        seconds = (SLACK + 4 * self.seconds * len(targets)) * busy()
        recording = self._run(root, path, {**texts, path: text}, seconds)
        lines = (line.partition(mark)[2] for line in recording["stdout"].split("\n")[:-1] if mark in line)
        answers = [from_json(json.loads(line)) for line in lines]
        reason = cannot(recording, seconds, self.limits.memory) or _last(recording)
        first = zip(answers, targets, strict=False)
        answers = [one for one, _ in itertools.takewhile(lambda pair: pair[0].target == pair[1], first)]
        return [drawn_up(one) if isinstance(one, Recipe) else one for one in answers], reason

    def _given(self, targets: Sequence[Target]) -> dict[str, Any]:
        """What the project itself calls them with."""
        project = self.project(targets[0].root)
        found = {}
        for name in {target.name for target in targets}:
            found[name] = {"build": to_json(project.builds(name)), "call": to_json(project.called(name))}
        return found

    def _run(self, root: str, path: str, texts: Mapping[str, bytes], seconds: float) -> Recording:
        limits = Limits(
            UNSTEPPED, seconds, self.limits.memory, self.limits.allow_writes, self.limits.allow_network
        )
        return self.launcher.run(Job(Command("script", path), root, texts, limits))


def busy() -> float:
    """By how much longer all takes than on a quiet machine: tries are bounded in time of the processor."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return min(max(load / (os.cpu_count() or 1), 1.0), MOST_BUSY)


def to_json_of(options: Mapping[str, Value]) -> dict[str, Any]:
    """What a project gives for names, as plain JSON."""
    return {name: to_json(one) for name, one in options.items()}


def known_modules(project: Project) -> Iterator[list[Any]]:
    """The classes of modules that an import line of the project's may say: module, name, attributes."""
    for path, name, has in project.modules():
        module = named(path, project.root)
        if module:
            yield [module, name, has]


def named(path: str, root: str) -> str:
    """The module that a file of a project is; nothing: no import line can say it."""
    inner = os.path.relpath(path, root)[: -len(".py")].split(os.sep)
    fits = path.endswith(".py") and all(part.isidentifier() for part in inner)
    return ".".join(inner[:-1] if inner[-1] == "__init__" else inner) if fits else ""


def drawn_up(recipe: Recipe) -> Driver:
    """The program of a recipe."""
    return Driver(os.path.join(recipe.target.root, DRIVER), program(recipe), recipe)


def _last(recording: Recording) -> str:
    error = recording["error"]
    return f"the search failed: {error['type']}: {error['message']}" if error else "the search was ended"
