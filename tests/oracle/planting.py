"""What the oracle refuses of a tape that was tampered with: each finding dropped, each culprit moved."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gradfix.defects import Defect, Span

from .choose import seeded
from .compare import compare
from .comparison import Analyser, Comparison
from .programs import Program, program
from .verdicts import judge


def dropped(result: Comparison, one: Defect) -> tuple[Defect, ...]:
    """All other findings."""
    return tuple(other for other in result.defects if other is not one)


def moved(result: Comparison, one: Defect, chance: random.Random) -> tuple[Defect, ...]:
    """The same findings, this one with an innocent statement as its culprit; its evidence is as it was."""
    guilty = {line for other in result.defects for line in (other.culprit.line, other.culprit.end_line)}
    places = [node for node in simple(result.program.source) if node.lineno not in guilty]
    places = [node for node in places if all(node.lineno in run.executed for run in result.runs)]
    if not places:
        return result.defects
    node = chance.choice(places)
    span = Span(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
    return tuple(replace(one, culprit=span) if other is one else other for other in result.defects)


def simple(source: str) -> Iterator[ast.stmt]:
    """The statements that do something by themselves."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            yield node


def refuses(written: Program, said: tuple[Defect, ...]) -> bool:
    """Whether the oracle disagrees with an analyser that says this."""
    result = compare(written, answering(said))
    return result is not None and bool(result.disagreements)


def answering(said: tuple[Defect, ...]) -> Analyser:
    return lambda source: said


def planted(first: int, programs: int, analyse: Analyser) -> Counter[tuple[str, str, str]]:
    """How often what was done to a finding of which kind was refused, or passed."""
    counts: Counter[tuple[str, str, str]] = Counter()
    chance = random.Random(first)
    for seed in range(first, first + programs):
        written = program(seeded(seed))
        result = compare(written, analyse)
        if result is None or result.disagreements:
            continue
        for one in result.defects:
            if judge(result, one) != "confirmed" or adds_zeros(result, one):
                continue
            for name, said in (("dropped", dropped(result, one)), ("moved", moved(result, one, chance))):
                if said != result.defects:
                    counts[name, one.kind, "refused" if refuses(written, said) else "passed"] += 1
    return counts


def adds_zeros(result: Comparison, one: Defect) -> bool:
    """Whether a stale gradient has nothing but zeros added: that may go unsaid."""
    return one.kind == "missing_zero_grad" and not any(run.stale for run in result.runs)
