"""What a comparison holds: a program, its runs, the defects, and where they disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from gradfix.defects import Defect, Span

from .facts import Run
from .programs import Program

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
    disagreements: list[Disagreement] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    """Verdict on a defect, counted: `confirmed missing_zero_grad`."""

    def count(self, verdict: str) -> None:
        self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1


def lines_of(defect: Defect) -> set[int]:
    """Every line that the defect names: culprit, evidence, facts."""
    spans = [defect.culprit, *(e.span for e in defect.evidence)]
    for fact in defect.facts.named().values():
        spans += [each for each in (fact if isinstance(fact, tuple) else (fact,)) if isinstance(each, Span)]
    return {line for span in spans for line in range(span.line, span.end_line + 1)}


def culprit_lines(defect: Defect) -> set[int]:
    return set(range(defect.culprit.line, defect.culprit.end_line + 1))
