"""Whether a culprit has cut what a backward needed: mended, it lets the gradient arrive."""

from __future__ import annotations

from dataclasses import replace

from gradfix.defects import Defect

from .comparison import Comparison, culprit_lines, lines_of
from .facts import Run
from .grafts import grafted
from .programs import Program
from .shadow import rewritten, uncut_node, without_cuts, without_flags
from .torchrun import run_all

NO_GRAPH = ("severed", "inference saved")


def severed(result: Comparison, defect: Defect, run: Run) -> bool:
    """A backward that the defect names fails, and doesn't when the culprit is mended."""
    lines = lines_of(defect)
    if any(run.failed(key, lines) for key in NO_GRAPH):
        itself = defect.kind == "no_leaf_requires_grad" and lines_of(defect) == culprit_lines(defect)
        return itself or healed(result, defect, run)
    return bool(lines.intersection(run.leaf_roots + run.lost))


def healed(result: Comparison, defect: Defect, run: Run) -> bool:
    """Whether a failure that the defect names goes when its culprit is mended.

    There may be a cut as well: then it goes when both are mended, and not when only the others are.
    """
    mended = grafted(result.program, defect.culprit)
    if mended is None or fewer(result, mended, defect, run):
        return True
    others = replace(result.program, source=rewritten(result.program.source, uncut_node))
    both = replace(mended, source=rewritten(mended.source, uncut_node))
    return fewer(result, both, defect, run) and not fewer(result, others, defect, run, unless_it_runs=False)


def fewer(result: Comparison, mended: Program, defect: Defect, run: Run, unless_it_runs: bool = True) -> bool:
    """Whether fewer of the failures that a defect names are left in another program."""
    lines = lines_of(defect)
    for other in run_all(mended, result.bodies):
        if (other.assignment, other.variant) == (run.assignment, run.variant) and not other.invalid:
            return count(other, lines) < count(run, lines)
    return unless_it_runs


def count(run: Run, lines: set[int]) -> int:
    return sum(failure.key in NO_GRAPH and bool(lines & set(failure.lines)) for failure in run.failures)


def flag_on_result(result: Comparison, defect: Defect, run: Run) -> bool:
    """Without the flag, backward says that the loss is severed, or no longer ends in what has the flag."""
    if run.leaf_roots or any(f.key == "flag of a result" for f in run.failures):
        return True
    without = run_all(without_flags(result.program, defect.culprit.line))
    same = [one for one in without if (one.assignment, one.variant) == (run.assignment, run.variant)]
    fewer = any(sum(b.reached for b in one.backwards) < sum(b.reached for b in run.backwards) for one in same)
    return fewer or any(f.key == "severed" for other in without for f in other.failures)


def term_severed(result: Comparison, defect: Defect, run: Run) -> bool:
    """Without the cut, some backward reaches more, or with another gradient."""
    span = defect.culprit
    plain = without_cuts(result.program, range(span.line, span.end_line + 1))
    whole = plain or grafted(result.program, span)
    if whole is None:
        return False
    for other in run_all(whole):
        if (other.assignment, other.variant) == (run.assignment, run.variant):
            return bool(other.invalid or other.failures) or arriving(other, plain) != arriving(run, plain)
    return True


def arriving(run: Run, plain: object) -> list[tuple[int, int, float, int]]:
    """What each backward has brought, and by how many nodes; a graft has nodes of its own."""
    return [(one.line, one.reached, one.mark, one.nodes if plain else 0) for one in run.backwards]
