"""Reads off one recorded run how a module is: where gradients arrive, and why they don't elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradfix.defects import kind_of, same_family
from gradfix.defects.kinds import Family
from gradfix.driver.recipe import Driver
from gradfix.health.checked import MEANT, Apart, Broken, Checked, Starved, State
from gradfix.rule import Finding
from gradfix.trace.report import Recording
from gradfix.verify.verdicts import Facts, facts

CUT = re.compile(r"cut by (?P<form>.+) in (?P<function>[^ ]+), (?P<where>.+)")
NO_GRAD = "does not require grad and does not have a grad_fn"
CONSTANT = "what it returns requires no gradient"
WILD = "a gradient is not finite, which the random numbers that it was given may explain"
STOOD = "with something in the place of {}, which isn't installed"
UNREAD = "its result is not used by the loss"


class Reader:
    """Reads the runs of one project's modules; knows what was found by reading its files."""

    def __init__(self, found: Mapping[str, Sequence[Finding]], codes: Mapping[str, str]) -> None:
        self.found = found
        """Absolute path -> findings and suspects."""
        self.codes = codes
        """Kind -> the code of its rule."""

    def checked(self, driver: Driver, shown: str, recording: Recording) -> Checked:
        """One module, from the run of its driver."""
        target = driver.recipe.target
        seen = facts(recording)
        broken = tuple(self.defects(driver, seen))
        starved = tuple(starving(recording))
        total = own(driver, seen)
        arrived = seen.fine | seen.wild
        reached = len(total & arrived)
        constant = NO_GRAD in seen.failure
        ran = broken or constant or recording["how"] in ("finished", "stopped")
        state = state_of(reached, starved, bool(arrived)) if ran else "not run"
        reason = note(seen, constant) if ran and not broken else "" if ran else seen.failure
        if driver.recipe.stood:
            reason = "; ".join(filter(None, (reason, STOOD.format(", ".join(driver.recipe.stood)))))
        return Checked(
            shown, target.name, target.line, "broken" if broken else state, reason,
            len(total), reached, starved, (), broken, driver.text, driver.recipe.assumed,
        )  # fmt: skip

    def apart(self, output: str, whole: Checked, recording: Recording) -> Apart:
        """What a backward from one output alone doesn't reach, and one from all of them does."""
        told = {one.name for one in whole.starved}
        found = (one for one in starving(recording) if one.why == "cut" and one.name not in told)
        return Apart(output, tuple(found))

    def defects(self, driver: Driver, seen: Facts) -> Iterator[Broken]:
        """What the run has seen broken in the project's own lines, by itself or beside what was read."""
        told: set[tuple[str, int]] = set()
        for event in seen.defects:
            place = event["place"]
            if place["file"] == driver.path or kind_of(event["kind"]).style:
                continue
            finding = self.read(event)
            if finding is None and (driver.recipe.stood or not by_itself(event)):
                continue
            line = finding.span.line if finding else place["line"]
            if (place["file"], line) not in told:
                told.add((place["file"], line))
                says = finding.message if finding else event["torch_says"].splitlines()[0]
                kind = finding.rule if finding else event["kind"]
                yield Broken(kind, self.codes.get(kind, ""), shown_path(place["file"]), line, says)

    def read(self, event: Mapping[str, Any]) -> Finding | None:
        """What the tape says of the same lines."""
        places = [event["place"], *(step["place"] for step in event["evidence"])]
        for place in places:
            for finding in self.found.get(place["file"], ()):
                covered = finding.span.line <= place["line"] <= finding.span.end_line
                if covered and same_family(finding.rule, event["kind"]):
                    return finding
        return None


def note(seen: Facts, constant: bool) -> str:
    """What is to be said of a run besides."""
    if constant:
        return CONSTANT
    return WILD if seen.wild - seen.fine else ""


def by_itself(event: Mapping[str, Any]) -> bool:
    """Whether a run alone shows that something is broken: what lets no gradient through may be meant."""
    kind = kind_of(event["kind"])
    return bool(event["torch_says"]) and kind.family is not Family.SEVERED and not kind.absence


def own(driver: Driver, seen: Facts) -> set[str]:
    """The parameters of what was built, by the names that they have in the driver."""
    steps = [event for event in seen.recording["events"] if event["event"] == "step"]
    return {name for event in steps for name in event["parameters"]}


def starving(recording: Recording) -> Iterator[Starved]:
    """Each parameter without a gradient."""
    for name, why in recording["reasons"].items():
        inner = name.partition(".")[2] or name
        cut = CUT.fullmatch(why)
        if why == "frozen":
            yield Starved(inner, "frozen")
        elif why == "never called":
            yield Starved(inner, "unused")
        elif cut:
            yield Starved(inner, "cut", f"{cut['form']} in {cut['function']} stops it ({cut['where']})")
        elif why.startswith(UNREAD):
            yield Starved(inner, "unread", why.removeprefix(UNREAD).removeprefix(", "))


def state_of(reached: int, starved: Sequence[Starved], anything: bool) -> State:
    """How a module is that no rule was seen broken in."""
    if any(one.why not in MEANT for one in starved):
        return "partly" if reached else "none"
    return "flows" if reached or anything else "none"


def shown_path(path: str) -> str:
    """A path as the user will recognise it."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near
