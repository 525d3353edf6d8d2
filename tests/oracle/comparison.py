"""What a comparison holds: a program, its runs, the defects, and where they disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from gradfix.defects import Defect, Role, Span

from .facts import Run, Spoil
from .programs import Program
from .torchrun import BODIES, Body, run_all

Analyser: TypeAlias = Callable[[str], Iterable[Defect]]
"""Source text to defects; what stands for the tape."""


def speechless(source: str) -> tuple[Defect, ...]:
    """The analyser that finds nothing, to see what torch alone does with the programs."""
    return ()


@dataclass(frozen=True)
class Disagreement:
    """`sort` groups them; `about` is the defect's kind or the failure's class; `line` is where."""

    sort: str
    about: str
    line: int
    words: str = ""

    @property
    def group(self) -> str:
        return f"{self.sort}: {self.about}"


@dataclass
class Comparison:
    program: Program
    runs: list[Run]
    defects: tuple[Defect, ...] = ()
    bodies: Mapping[str, Body] = field(default_factory=lambda: BODIES)
    disagreements: list[Disagreement] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    """Verdict on a defect, counted: `confirmed missing_zero_grad`."""

    @cached_property
    def watched(self) -> list[Run]:
        """The same runs, watched by the values that were saved: see `spoils`."""
        return [run for run in run_all(self.program, self.bodies, watched=True) if not run.invalid]

    def watched_like(self, run: Run) -> Run:
        """The watched run under the same circumstances."""
        same = (one for one in self.watched if (one.assignment, one.variant) == (run.assignment, run.variant))
        return next(same, Run())

    def spoils(self, run: Run) -> set[Spoil]:
        """What a run has overwritten before a backward needed it."""
        return self.watched_like(run).spoils

    def count(self, verdict: str) -> None:
        self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1


def lines_of(defect: Defect) -> set[int]:
    """Every line that the defect names: culprit, evidence, facts."""
    spans = [defect.culprit, *(e.span for e in defect.evidence)]
    for fact in defect.facts.named().values():
        spans += [each for each in (fact if isinstance(fact, tuple) else (fact,)) if isinstance(each, Span)]
    return {line for span in spans for line in range(span.line, span.end_line + 1)}


def culprit_lines(defect: Defect) -> set[int]:
    return lines_in(defect.culprit)


def lines_in(span: Span) -> set[int]:
    return set(range(span.line, span.end_line + 1))


def lines_as(defect: Defect, *roles: Role) -> set[int]:
    """The lines that play one of these parts in a defect."""
    return {line for one in defect.evidence if one.role in roles for line in lines_in(one.span)}


def reported(result: Comparison, kinds: Iterable[str], lines: set[int]) -> bool:
    """Whether a defect of such a kind names one of the lines; what fails out of sight may have any."""
    wanted = set(kinds)
    unseen = not lines & set(range(result.program.lines + 1))
    return any(d.kind in wanted and (unseen or lines & lines_of(d)) for d in result.defects)
