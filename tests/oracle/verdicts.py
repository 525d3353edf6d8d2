"""What the tape says must be so: every defect is held against what torch did."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from gradfix.defects import Defect, Role

from .claims import FLOW, WRITES
from .comparison import Comparison, Disagreement, culprit_lines, lines_as, lines_of
from .conditions import holds
from .facts import Run
from .files import CALLS_FORWARD
from .mend import keeping, unflagged
from .severing import NO_GRAPH, flag_on_result, severed, term_severed
from .shadow import with_loud_write
from .torchrun import Body, Keeps, backpropagates, run_all
from .trim import parses


def judge_defects(result: Comparison) -> None:
    for defect in result.defects:
        verdict = judge(result, defect)
        for used in (backpropagated, backpropagated_later):
            if verdict in ("false", "sometimes") and {"D", "G"}.intersection(defect.conventions):
                verdict = judge(used(result), defect)
        result.count(f"{verdict} {defect.kind}")
        if verdict in ("false", "sometimes"):
            sort = verdict if defect.certainty == "certain" else f"{verdict} (likely)"
            result.disagreements.append(Disagreement(sort, defect.kind, defect.culprit.line))


def backpropagated(result: Comparison) -> Comparison:
    """The same file, used as the conventions on forward say: it is called, its output and what it hands out
    are backpropagated."""
    return driven(result, "", backpropagates)


def backpropagated_later(result: Comparison) -> Comparison:
    """The same, where what it hands out is a loss that is kept, and backpropagated behind the output."""
    return driven(result, "blur.backward()\n" if result.program.opaque else "", Keeps())


def driven(result: Comparison, behind: str, body: Body) -> Comparison:
    names = [n.name for n in ast.parse(result.program.source).body if isinstance(n, ast.ClassDef) and n.bases]
    driver = "".join(CALLS_FORWARD.format(name=name) for name in names) + behind
    program = replace(result.program, driver=driver)
    bodies = {"backpropagates": body}
    runs = run_all(program, bodies)
    return Comparison(program, [run for run in runs if not run.invalid], result.defects, bodies)


def judge(result: Comparison, defect: Defect) -> str:
    """What the runs say of a defect.

    confirmed; sometimes; false; undecided: something failed earlier; unseen: it never ran; unchecked.
    """
    check = CHECKS.get(defect.kind)
    if check is None:
        return "unchecked"
    runs = [run for run in result.runs if concerned(result, defect, run)]
    if not runs:
        return "unseen"
    confirmed = [run for run in runs if check(result, defect, run)]
    clean = [
        run
        for run in runs
        if not blurred(result, defect, run) and run not in confirmed and lines_of(defect) <= run.executed
    ]
    if clean:
        return "sometimes" if confirmed else "false"
    return "confirmed" if confirmed else "undecided"


def blurred(result: Comparison, defect: Defect, run: Run) -> bool:
    """Whether something else failed, so that the run says nothing more of a defect."""
    named = lines_as(defect, Role.BACKWARD, Role.BACKWARD_NEEDS)
    watched = result.watched_like(run)
    refused = any(culprit_lines(defect) & set(failure.lines) for failure in watched.failures)
    if defect.kind in WRITES and named and named <= {b.line for b in watched.backwards} and not refused:
        return False  # they came through where what was saved is watched, and so did the write
    return any(failure.key not in EXPECTED.get(defect.kind, ()) for failure in run.failures)


def concerned(result: Comparison, defect: Defect, run: Run) -> bool:
    if not culprit_lines(defect) & run.executed:
        return False
    return all(holds(part, run, result.program.source) for part in defect.condition.split(" and ") if part)


Check = Callable[[Comparison, Defect, Run], bool]


def overwritten(result: Comparison, defect: Defect, run: Run) -> bool:
    """The culprit wrote what was saved where the defect says so, before the backward that it names."""
    writes = lines_as(defect, Role.OVERWRITTEN) if defect.kind == "inplace_module" else culprit_lines(defect)
    named, saved = lines_as(defect, Role.BACKWARD, Role.BACKWARD_NEEDS), lines_as(defect, Role.SAVED)
    return any(
        writes & set(spoil.writes)
        and (not named or spoil.backward in named)
        and (not saved or spoil.saved in saved)
        for spoil in result.spoils(run)
    )


def written_by_module(result: Comparison, defect: Defect, run: Run) -> bool:
    """The same, and nothing is written there when the culprit is told not to."""
    source = unflagged(result.program.source, defect.culprit.line)
    if source is None or not overwritten(result, defect, run):
        return False
    mended = replace(result, program=replace(result.program, source=source))
    return writings(mended, defect, run) < writings(result, defect, run)


def writings(result: Comparison, defect: Defect, run: Run) -> int:
    """How often the line that overwrites has written what a backward needed."""
    at, saved = lines_as(defect, Role.OVERWRITTEN), lines_as(defect, Role.SAVED)
    return sum(line in at for spoil in result.spoils(run) if spoil.saved in saved for line in spoil.writes)


VIEWS = ("view of many", "view without grad", "expanded written")
REFUSED = ("expanded written", "inference written", "out of a live tensor")
EXPECTED = {
    **dict.fromkeys(WRITES, ("overwritten",)),
    **dict.fromkeys(FLOW, NO_GRAPH),
    "backward_twice": ("backward twice",),
    "inplace_on_leaf": ("leaf written",),
    "inplace_on_view_of_many": (*VIEWS, "base written"),
    "write_refused": (*REFUSED, "leaf written"),
    "non_scalar_backward": ("not a scalar",),
}
"""The failures that hide nothing of such a defect."""


def at_culprit(*keys: str) -> Check:
    return lambda result, defect, run: any(run.failed(key, culprit_lines(defect)) for key in keys)


def view_written(result: Comparison, defect: Defect, run: Run) -> bool:
    """At the write, or at a later use of a view whose base was written."""
    return at_culprit(*VIEWS)(result, defect, run) or any(f.key == "base written" for f in run.failures)


def twice(result: Comparison, defect: Defect, run: Run) -> bool:
    """A backward finds its graph freed, and doesn't when the culprit keeps it."""
    if not run.failed("backward twice", lines_of(defect)):
        return False
    lines = result.program.source.split("\n")
    line = lines[defect.culprit.line - 1]
    kept = keeping(line)
    lines[defect.culprit.line - 1] = kept
    if "retain_graph" in line or kept == line or not parses(lines):
        return "backward" in line or "grad(" in line
    count = sum(failure.key == "backward twice" for failure in run.failures)
    for other in run_all(replace(result.program, source="\n".join(lines)), result.bodies):
        if (other.assignment, other.variant) == (run.assignment, run.variant) and not other.invalid:
            return sum(failure.key == "backward twice" for failure in other.failures) < count
    return True


def stale(result: Comparison, defect: Defect, run: Run) -> bool:
    """A step uses a gradient again that the culprit has added to."""
    at = culprit_lines(defect)
    return any(step.line in at or at.intersection(step.backwards) for step in run.stale + run.repeated)


def erased(result: Comparison, defect: Defect, run: Run) -> bool:
    """A step finds a gradient erased, by the culprit."""
    steps = [step for step in run.erased + run.partly_erased if step.line in lines_of(defect)]
    erasers = result.watched_like(run).erasers
    return any((line, at) in erasers
               for step in steps for at in step.backwards for line in culprit_lines(defect))  # fmt: skip


def non_leaf(result: Comparison, defect: Defect, run: Run) -> bool:
    return bool(lines_of(defect).intersection(run.non_leaf_reads))


def rebound(result: Comparison, defect: Defect, run: Run) -> bool:
    return bool(culprit_lines(defect).intersection(run.rebound))


def unreached(result: Comparison, defect: Defect, run: Run) -> bool:
    return any(o.line in culprit_lines(defect) and o.unreached for o in run.optimizers)


def backward_without_grad(result: Comparison, defect: Defect, run: Run) -> bool:
    lines = lines_of(defect)
    return any(b.line in lines and not b.grad_mode for b in run.backwards)


def written_through_data(result: Comparison, defect: Defect, run: Run) -> bool:
    """The culprit has written what was saved, as its version shows where the write is loud."""
    loud = replace(result, program=with_loud_write(result.program, defect.culprit.line))
    return overwritten(loud, defect, run) or any(
        other.assignment == run.assignment and any(f.key == "base written" for f in other.failures)
        for other in loud.watched
    )


def without_derivative(result: Comparison, defect: Defect, run: Run) -> bool:
    """The loss has no graph, or a term of it has none, for want of what passes gradients on."""
    term = defect.impact == "trains wrong" and term_severed(result, defect, run)
    return term or severed(result, defect, run)


CHECKS: dict[str, Check] = {
    **dict.fromkeys(WRITES, overwritten),
    "inplace_module": written_by_module,
    **dict.fromkeys(FLOW, severed),
    "non_differentiable_loss": without_derivative,
    "requires_grad_on_result": flag_on_result,
    "leaf_rebound": rebound,
    "inplace_on_leaf": at_culprit("leaf written"),
    "inplace_on_view_of_many": view_written,
    "write_refused": at_culprit(*REFUSED, "leaf written"),
    "non_scalar_backward": at_culprit("not a scalar"),
    "backward_twice": twice,
    "missing_zero_grad": stale,
    "zero_grad_before_step": erased,
    "grad_of_non_leaf": non_leaf,
    "unreached_parameters": unreached,
    "backward_in_no_grad": backward_without_grad,
    "write_through_data": written_through_data,
    "severed_term": term_severed,
}
del CHECKS["requires_grad_misspelt"], CHECKS["reentrant_checkpoint_cut"]
