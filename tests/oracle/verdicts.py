"""What the tape says must be so: every defect is held against what torch did."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace

from gradfix.defects import Defect

from .claims import FLOW, WRITES
from .comparison import Comparison, Disagreement, culprit_lines, lines_of
from .facts import Run, Step
from .files import CALLS_FORWARD
from .mend import out_of_place
from .shadow import loud_variants, without_cuts, without_flags
from .torchrun import Body, Keeps, backpropagates, run_all


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
    runs = run_all(program, {"backpropagates": body})
    return Comparison(program, [run for run in runs if not run.invalid], result.defects)


def judge(result: Comparison, defect: Defect) -> str:
    """What the runs say of a defect.

    confirmed; sometimes; false; undecided: something failed earlier; unseen: it never ran; unchecked;
    needless: true, but it goes away when the other writes are mended.
    """
    check = CHECKS.get(defect.kind)
    if check is None:
        return "unchecked"
    runs = [run for run in result.runs if concerned(result, defect, run)]
    if not runs:
        return "unseen"
    confirmed = [run for run in runs if check(result, defect, run)]
    clean = [
        run for run in runs if not run.failures and run not in confirmed and lines_of(defect) <= run.executed
    ]
    if clean:
        return "sometimes" if confirmed else "false"
    if confirmed and defect.kind in WRITES and not guilty(result, defect):
        return "needless"
    return "confirmed" if confirmed else "undecided"


def concerned(result: Comparison, defect: Defect, run: Run) -> bool:
    if not culprit_lines(defect) & run.executed:
        return False
    return all(holds(part, run, result.program.source) for part in defect.condition.split(" and ") if part)


def holds(condition: str, run: Run, source: str) -> bool:
    """Whether a part of a path condition is true in that run, as far as flags and the arms taken can tell."""
    try:
        return bool(eval(condition, {}, dict(run.names)))
    except Exception:
        return not contradicted(condition, run, ast.parse(source))


OPPOSITES = {" != ": " == ", " is not ": " is "}


def contradicted(condition: str, run: Run, tree: ast.Module) -> bool:
    """Whether only the other arm of the branch that has such a test was ever taken."""
    opposite = condition.removeprefix("not ")
    for negative, positive in OPPOSITES.items():
        opposite = opposite.replace(negative, positive)
    branches = [node for node in ast.walk(tree) if isinstance(node, ast.If) and node.lineno in run.passes]
    arms = {ast.unparse(node.test): arms_taken(node, run) for node in branches}
    for test, (yes, no) in list(arms.items()):
        if test.startswith("not "):
            arms.setdefault(test.removeprefix("not "), (no, yes))  # the tape says it of what is negated
    if condition in arms:
        return not arms[condition][0]
    return opposite in arms and not arms[opposite][1]


def arms_taken(node: ast.If, run: Run) -> tuple[bool, bool]:
    """Whether the arms of a branch ever ran; one that has no line where the other ran less often."""
    yes = run.passes[node.body[0].lineno]
    if node.orelse:
        return yes > 0, node.orelse[0].lineno in run.passes
    return yes > 0, yes < run.passes[node.lineno]


Check = Callable[[Comparison, Defect, Run], bool]


def overwritten(result: Comparison, defect: Defect, run: Run) -> bool:
    lines = lines_of(defect)
    backwards = {b.line for b in run.backwards} | {n for f in run.failures for n in f.lines}
    if not lines & backwards - culprit_lines(defect):
        return any(f.key == "overwritten" for f in run.failures)
    return run.failed("overwritten", lines)


def guilty(result: Comparison, defect: Defect) -> bool:
    """Whether the failure stays when every other culprit of it is mended."""
    source = result.program.source
    for other in result.defects:
        if other.kind in WRITES and other.culprit.line != defect.culprit.line:
            mended = out_of_place(source, other.culprit.line)
            if mended is None:
                return True
            source = mended
    without = [run for run in run_all(replace(result.program, source=source)) if not run.invalid]
    return not without or any(f.key == "overwritten" for run in without for f in run.failures)


def severed(result: Comparison, defect: Defect, run: Run) -> bool:
    lines = lines_of(defect)
    if run.failed("severed", lines) or run.failed("inference saved", lines):
        return True
    return bool(lines.intersection(run.leaf_roots + run.lost))


def flag_on_result(result: Comparison, defect: Defect, run: Run) -> bool:
    """Without the flag, backward says that the loss is severed."""
    if run.leaf_roots or any(f.key == "flag of a result" for f in run.failures):
        return True
    without = run_all(without_flags(result.program, defect.culprit.line))
    return any(f.key == "severed" for other in without for f in other.failures)


def at_culprit(*keys: str) -> Check:
    return lambda result, defect, run: any(run.failed(key, culprit_lines(defect)) for key in keys)


def view_written(result: Comparison, defect: Defect, run: Run) -> bool:
    """At the write, or at a later use of a view whose base was written."""
    keys = ("view of many", "view without grad", "expanded written")
    return at_culprit(*keys)(result, defect, run) or any(f.key == "base written" for f in run.failures)


def twice(result: Comparison, defect: Defect, run: Run) -> bool:
    return run.failed("backward twice", lines_of(defect))


def names_step(steps: Iterable[Step], defect: Defect) -> bool:
    lines = lines_of(defect)
    return any(step.line in lines or lines.intersection(step.backwards) for step in steps)


def stale(result: Comparison, defect: Defect, run: Run) -> bool:
    return names_step(run.stale + run.repeated, defect)


def erased(result: Comparison, defect: Defect, run: Run) -> bool:
    return names_step(run.erased + run.partly_erased, defect)


def non_leaf(result: Comparison, defect: Defect, run: Run) -> bool:
    return bool(lines_of(defect).intersection(run.non_leaf_reads))


def rebound(result: Comparison, defect: Defect, run: Run) -> bool:
    return bool(culprit_lines(defect).intersection(run.rebound))


def unreached(result: Comparison, defect: Defect, run: Run) -> bool:
    return any(o.line in culprit_lines(defect) and o.unreached for o in run.optimizers)


def backward_without_grad(result: Comparison, defect: Defect, run: Run) -> bool:
    lines = lines_of(defect)
    return any(b.line in lines and not b.grad_mode for b in run.backwards)


SPOILT = ("overwritten", "base written")


def written_through_data(result: Comparison, defect: Defect, run: Run) -> bool:
    """Torch fails where the write is loud; a split view says "base written" for its saved value."""
    return any(
        other.assignment == run.assignment and any(f.key in SPOILT for f in other.failures)
        for variant in loud_variants(result.program, defect.culprit.line)
        for other in run_all(variant)
    )


def term_severed(result: Comparison, defect: Defect, run: Run) -> bool:
    """Without the cut, some backward reaches more, or with another gradient."""
    span = defect.culprit
    whole = without_cuts(result.program, range(span.line, span.end_line + 1))
    if whole is None:
        return True
    for other in run_all(whole):
        if (other.assignment, other.variant) == (run.assignment, run.variant):
            return bool(other.invalid or other.failures) or other.backwards != run.backwards
    return True


CHECKS: dict[str, Check] = {
    **dict.fromkeys(WRITES, overwritten),
    **dict.fromkeys(FLOW, severed),
    "requires_grad_on_result": flag_on_result,
    "leaf_rebound": rebound,
    "inplace_on_leaf": at_culprit("leaf written"),
    "inplace_on_view_of_many": view_written,
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
