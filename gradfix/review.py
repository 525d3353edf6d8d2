"""One finding at a time: what somebody says of it is done to the text, which is then looked at anew."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from gradfix import engine, files, suppressions
from gradfix.applied import Place, moved
from gradfix.engine import Known
from gradfix.findings import Candidate, Seen
from gradfix.outcome import Outcome, Run
from gradfix.plan import Plan
from gradfix.rule import Finding
from gradfix.session import Request, known_in

Answer: TypeAlias = Literal["take", "skip", "ignore", "rest", "leave", "quit"]
"""Rest: this one and all that is safe in the file; leave: nothing more in the file."""
Ask: TypeAlias = "Callable[[Question], Answer]"
Step: TypeAlias = tuple[str, list[Finding]]
"""A text, and what is mended in it."""


@dataclass(frozen=True, slots=True)
class Question:
    """A finding in a file as it stands by now."""

    outcome: Outcome
    """The file with this one finding, and the text that mends it if there is one to take."""
    number: int
    """The how manieth it is."""
    of: int
    """As far as can be seen from here."""

    @property
    def finding(self) -> Finding:
        return self.outcome.findings[0]


@dataclass(slots=True)
class Asked:
    """Somebody's choice in one file."""

    plan: Plan
    ask: Ask
    withheld: Collection[str] = ()
    rounds: int = sys.maxsize
    passed: list[tuple[str, Place]] = field(default_factory=list)
    """What is not to be asked again, by code, and where it is by now."""
    number: int = 0
    silenced: int = 0
    rest: int = 0
    """How often all that is safe may still be applied unasked."""
    over: bool = False
    """Nothing more in this file."""
    quit: bool = False

    def next(self, seen: Seen) -> Step:
        """Ask of one finding after the other until the text changes or nothing is left to ask."""
        while not self.over:
            left = engine.without(Counter((code, line) for code, (line, _) in self.passed), seen)
            if self.rest or not left.candidates:
                return self._moved(self._unasked(left))
            finding = left.candidates[0].finding
            step = self._answered(left.candidates[0], left)
            if step[0] != seen.source.text:
                return self._moved(step)
            if not self.rest:
                self.passed.append((finding.code, (finding.span.line, finding.span.column + 1)))
        return seen.source.text, []

    def _moved(self, step: Step) -> Step:
        """What was passed over moves with the lines above it."""
        self.passed = [(code, moved(place, step[1])) for code, place in self.passed]
        return step

    def _unasked(self, left: Seen) -> Step:
        """Whatever else may be applied, where that was said."""
        if not self.rest:
            return left.source.text, []
        self.rest -= 1
        self.over = not self.rest
        return engine.Everything(self.plan).next(left)

    def _answered(self, candidate: Candidate, left: Seen) -> Step:
        """What the answer makes of the text; the same text where nothing is to be done."""
        self.number += 1
        finding, source = candidate.finding, left.source
        text = _mended(candidate, left)
        after = source.encode(text) if text != source.text else None
        now = replace(engine.listed(source.path, left), findings=(finding,), after=after)
        answer = self.ask(Question(now, self.number, self.number + len(left.candidates) - 1))
        if answer in ("take", "rest"):
            self.rest = engine.ROUNDS if answer == "rest" else 0
            return text, [finding] if after is not None else []
        if answer == "ignore":
            self.silenced += 1
            return suppressions.added(source, {finding.span.line: [finding.code]}), []
        self.over = answer in ("leave", "quit")
        self.quit = answer == "quit"
        return source.text, []


def _mended(candidate: Candidate, seen: Seen) -> str:
    """The text with a finding mended; the same text where that is for the user to do."""
    from gradfix.edits import apply

    applicable = candidate.finding.applicability in ("safe", "unsafe")
    if candidate.fix is None or seen.tree is None or not applicable:
        return seen.source.text
    return apply(seen.tree, candidate.fix.edits)


def reviewed(found: Outcome, plan: Plan, ask: Ask, known: Known | None = None) -> tuple[Outcome, bool]:
    """What a file's findings come to as they are asked of one by one, and whether to go on to other files."""
    unsettled = {one.code for one in found.findings if one.decline == engine.UNSETTLED}
    asked = Asked(plan, ask, unsettled)
    outcome = engine.chosen(found.path, found.before or b"", asked, known)
    return replace(outcome, silenced=asked.silenced), not asked.quit


def review(found: Run, request: Request, ask: Ask) -> Run:
    """A run in which somebody says of each finding what to do; a file is written when it is done with."""
    outcomes: list[Outcome] = []
    going_on = True
    for outcome in found.outcomes:
        if going_on and outcome.findings and not outcome.failure:
            known = known_in(request, outcome)
            outcome, going_on = reviewed(outcome, request.plan, ask, known)
            outcomes.append(files.written(outcome))
        else:
            outcomes.append(outcome.unmended)
    return replace(found, outcomes=tuple(outcomes), mode="review")
