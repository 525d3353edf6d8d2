"""Many texts, each forgotten in several ways; what is said more is shrunk to the parts that it takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from random import Random

from gradfix.defects import Defect
from gradfix.gate import passes
from gradfix.source import Source
from gradfix.tape.interpreter.limits import Resolver

from .bounds import BOUNDS, Bound, nobody
from .comparing import More, more, read, sorted_out, told
from .edits import Edit, Edited, Text
from .texts import BLURS, Part

WAYS = (*BLURS, *BOUNDS)
MOST = 8
"""How many parts are blurred at once at most."""
AT_ONCE = (1, 1, 2, 4, 8, 16)
"""The same where several ways are gone at once: the larger half of a text is beside the point."""
BOUNDED = 0.3
"""How many of those texts are played once more with less of a budget or limit."""
ALONE = 0.9
"""How many of those texts are taken without their neighbours."""
DEEDS = re.compile(rb"\.(?:backward|step|zero_grad|detach|requires_grad)\w*\b|\b[a-z]\w*_\(|[-+*/|&]= ")
"""What autograd may take amiss: a backward, a step, a write in place."""


@dataclass(frozen=True, slots=True)
class Case:
    """A finding that is there only because something was forgotten."""

    path: str
    way: str
    forgotten: str
    """What was taken away: the lines that it takes, or the setting."""
    more: More
    text: bytes
    """The text that knows less."""


@dataclass(slots=True)
class Tally:
    """How often each way was gone, and what it brought."""

    texts: int = 0
    lines: int = 0
    findings: int = 0
    played: int = 0
    """How often a text was played with something forgotten."""
    runs: Counter[str] = field(default_factory=Counter)
    said: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often more was said, by way and sort."""
    cases: list[Case] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Where the tape itself failed: whoever knows less has no right to that either."""

    def add(self, other: Tally) -> None:
        self.texts += other.texts
        self.lines += other.lines
        self.findings += other.findings
        self.played += other.played
        self.runs.update(other.runs)
        self.said.update(other.said)
        self.cases += other.cases
        self.crashes += other.crashes

    def note(self, case: Case) -> None:
        self.said[case.way, case.more.sort] += 1
        self.cases.append(case)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which ways are gone, and how often each in a text."""

    ways: tuple[str, ...] = WAYS
    each: int = 2
    seed: int = 1
    drawn: int = 0
    """So many ways instead, drawn for each text and gone at once, as forgetting much is forgetting as well:
    twice as many where it writes, steps or runs backward, and twice as many again where something is found;
    0: all ways, one by one. Most texts are taken alone then, as if they had no neighbours: those cost more
    than all the rest."""

    def bound(self, random: Random) -> tuple[str, ...]:
        """A budget or limit that is taken away from a text by itself: each silences much of the rest."""
        bounds = [way for way in self.ways if way in BOUNDS and way != "neighbour"]
        return tuple(random.sample(bounds, 1)) if bounds and random.random() < BOUNDED else ()

    def alone(self, random: Random) -> bool:
        """Whether a text is taken without its neighbours from the start."""
        return self.drawn > 0 and random.random() < ALONE

    def of(self, played: Played, random: Random) -> tuple[str, ...]:
        """The ways that are gone in a text."""
        ways = [way for way in self.ways if way in BLURS]
        content = played.source.content
        many = self.drawn * (2 if DEEDS.search(content) else 1) * (2 if played.said else 1)
        return tuple(random.sample(ways, min(many, len(ways))))


class Played:
    """A text, what the tape says of it, and what it says more when something is forgotten."""

    def __init__(self, source: Source, resolve: Resolver) -> None:
        self.source = source
        self.resolve = resolve
        self.text = Text(source.content)
        self.said: tuple[Defect, ...] = told(source, resolve)

    def blurred(self, parts: Sequence[Part]) -> list[More] | None:
        """What is said more with some parts blurred; None if that is no text."""
        edited = self.edited(parts)
        source = read(self.source.path, edited.new.content) if edited.sound else None
        if source is None:
            return None
        return list(more(self.said, edited, told(source, self.resolve)))

    def edited(self, parts: Sequence[Part]) -> Edited:
        return Edited(self.text, [edit for part in parts for edit in part])

    def sorted_out(self, found: list[More]) -> list[More]:
        return sorted_out(found, self.source, self.resolve)


def forget(path: str, content: bytes, plan: Plan, resolve: Resolver) -> Tally:
    """Play a text as it is, and then in each of the ways."""
    tally = Tally()
    source = read(path, content) if passes(content) else None
    if source is None:
        return tally
    name = sha1(content).hexdigest()  # wherever it lies, and however many are called the same
    random = Random(f"{plan.seed} {name}")
    played = Played(source, nobody if plan.alone(random) else resolve)
    tally.texts, tally.lines = 1, content.count(b"\n")
    tally.findings = sum(one.certainty != "suspect" for one in played.said)
    ways = plan.ways
    if plan.drawn:
        ways = () if played.resolve is nobody else tuple({"neighbour"} & {*plan.ways})
        ways += plan.bound(random)
        _at_once(played, plan.of(played, random), random, tally)
    for way in ways:
        try:
            _go(played, way, plan, Random(f"{plan.seed} {name} {way}"), tally)
        except Exception as error:
            tally.crashes.append(f"{path}: {way}: {error!r}")
    return tally


def _at_once(played: Played, ways: Sequence[str], random: Random, tally: Tally) -> None:
    """Go several ways in one run, each with parts that leave those of the others alone."""
    of: dict[int, str] = {}
    chosen: list[Part] = []
    for way in ways:
        parts = list(BLURS[way](played.text, played.source.tree))
        drawn = random.sample(parts, min(len(parts), random.choice(AT_ONCE)))
        for part in drawn:
            if played.edited([*chosen, part]).sound:
                chosen.append(part)
                of[id(part)] = way
    try:
        gone = {of[id(part)] for part in chosen}
        if chosen and _blurred(played, chosen, of, tally):
            tally.runs.update(gone)
    except Exception as error:
        tally.crashes.append(f"{played.source.path}: {sorted(gone)}: {error!r}")


def _go(played: Played, way: str, plan: Plan, random: Random, tally: Tally) -> None:
    if way in BLURS:
        parts = list(BLURS[way](played.text, played.source.tree))
        _blur(played, way, _choices(parts, plan, random), tally)
    else:
        bounds = list(BOUNDS[way](random, played.resolve))
        _bound(played, way, random.sample(bounds, 1) if plan.drawn else bounds, tally)


def _blur(played: Played, way: str, choices: Iterable[list[Part]], tally: Tally) -> None:
    for chosen in choices:
        if _blurred(played, chosen, {id(part): way for part in chosen}, tally):
            tally.runs[way] += 1


def _blurred(played: Played, chosen: list[Part], of: Mapping[int, str], tally: Tally) -> bool:
    """Play a text with some parts blurred, each in its way; whether that is a text."""
    found = played.blurred(chosen)
    if found is None:
        return False
    tally.played += 1
    for one in played.sorted_out(found):
        fewest = _fewest(played, chosen, one)
        way = of[id(fewest[0])]
        edited = played.edited(fewest)
        tally.note(Case(played.source.path, way, _lines(played, fewest), one, edited.new.content))
    return True


def _choices(parts: list[Part], plan: Plan, random: Random) -> Iterator[list[Part]]:
    """One part, or a few at once, or all: more are met by few runs, but hide one another."""
    if len(parts) <= plan.each:
        yield from ([part] for part in parts)
        return
    for turn in range(plan.each):
        many = min(len(parts), 1 if turn % 2 == 0 else random.randint(2, MOST))
        yield random.sample(parts, many)


def _fewest(played: Played, parts: list[Part], one: More) -> list[Part]:
    """The parts that it takes for a finding to be there."""
    for part in list(parts):
        fewer = [other for other in parts if other is not part]
        found = (played.blurred(fewer) or []) if fewer else []
        if any((each.where, each.defect.kind) == (one.where, one.defect.kind) for each in found):
            parts = fewer
    return parts


def _lines(played: Played, parts: list[Part]) -> str:
    return "; ".join(_line(played.text, part[0]) for part in parts)


def _line(text: Text, edit: Edit) -> str:
    number = text.content.count(b"\n", 0, edit.start) + 1
    return f"{number}: {text.content.splitlines()[number - 1].decode().strip()}"


def _bound(played: Played, way: str, bounds: Iterable[Bound], tally: Tally) -> None:
    for bound in bounds:
        with bound.entered():
            after = told(played.source, bound.resolve or played.resolve)
        tally.played += 1
        tally.runs[way] += 1
        found = list(more(played.said, Edited(played.text, ()), after))
        for one in played.sorted_out(found):
            tally.note(Case(played.source.path, way, bound.name, one, played.text.content))
