"""Holds the tape's defects against what torch did, and what torch did against the defects."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from gradfix.defects import Assumption, Defect, Role

from .claims import FLOW, REQUIRED, WRITES
from .comparison import Analyser, Comparison, Disagreement, culprit_lines, lines_as, reported
from .facts import Failure, Run, Step
from .instrument import binds_nothing
from .mend import bare_write, keeping, out_of_place, unflagged
from .programs import Program
from .shadow import everywhere_loud
from .silent import judge_silence
from .torchrun import TEXTS, run_all
from .trim import removed
from .verdicts import judge_defects


def compare(program: Program, analyse: Analyser) -> Comparison | None:
    """None where the program has a fault of its own that autograd has nothing to do with."""
    runs = [run for run in run_all(program) if not run.invalid]
    if not runs:
        return None
    listed = tuple(defect for defect in analyse(program.source) if _said(defect))
    result = Comparison(program, runs, listed)
    judge_defects(result)
    judge_failures(result)
    judge_spoils(result)
    judge_steps(result)
    judge_hidden_writes(result)
    judge_silence(result)
    count_unsaid(result)
    excuse(result, analyse)
    return result


def _said(defect: Defect) -> bool:
    """Whether a defect is listed, or only isn't as nobody may choose the way on which there is no term."""
    return defect.certainty != "suspect" or defect.assumptions == (Assumption.NOTHING_IS_LEARNT.value,)


def excuse(result: Comparison, analyse: Analyser) -> None:
    """Tell apart what is missed only because the callers, or a callee, can't be known from the file."""
    missed = [one for one in result.disagreements if one.sort.startswith("missed")]
    fuller = known(result.program) if missed else []
    others = [other for program in fuller if (other := compare(program, analyse)) is not None]
    for one in missed if others else ():
        if not any(
            (two.about, two.line) == (one.about, one.line) for other in others for two in other.disagreements
        ):
            result.disagreements.remove(one)
            result.count(f"apart: {one.about}, for what isn't in the file")


def known(program: Program) -> list[Program]:
    """The program in one file with all that its reader can't know, in each way in which that may be."""
    if program.opaque:
        return [
            replace(program, source=program.source.replace(MYSTERY, f"blur = {text}"), opaque=False)
            for text in TEXTS.values()
        ]
    if not program.driver:
        return []
    return [replace(program, source=program.source + program.driver, driver="")]


def judge_failures(result: Comparison) -> None:
    """Every failure of every run must be a defect, but overwritings: those are told by what was saved."""
    for key, (_, kinds) in REQUIRED.items():
        failed = {f.lines: f for run in result.runs for f in run.failures if f.key == key}
        for failure in failed.values() if key != "overwritten" else ():
            if not reported(result, kinds, set(failure.lines)) and not follows(result, failure):
                same = [
                    run
                    for run in result.runs
                    if (key, failure.lines) in {(f.key, f.lines) for f in run.failures}
                ]
                miss(result, Disagreement("missed", key, failure.lines[-1], failure.message), same)


def follows(result: Comparison, failure: Failure) -> bool:
    """Whether a second backward also fails for the graph that a reported one has freed."""
    culprits = {d.culprit.line for d in result.defects if d.kind == "backward_twice"}
    if failure.key != "backward twice" or not culprits:
        return False
    lines = result.program.source.split("\n")
    for line in culprits:
        lines[line - 1] = keeping(lines[line - 1])
    runs = run_all(replace(result.program, source="\n".join(lines)), result.bodies)
    return not any(run.failed("backward twice", set(failure.lines)) for run in runs)


def judge_spoils(result: Comparison) -> None:
    """Every line that overwrites what a backward needs must be a defect that names both."""
    pairs = {(line, s.backward) for run in result.watched for s in run.spoils for line in s.writes}
    for line, backward in sorted(pairs):
        if any(accuses(defect, line, backward, result) for defect in result.defects):
            continue
        took_part = [run for run in result.watched if {line, backward} <= run.executed]
        hit = [run for run in took_part if spoilt(run, line, backward)]
        if len(hit) < len(took_part):
            result.count("may happen overwritten")
        else:
            sort = "missed" if len(hit) == len(result.watched) else "missed under a flag"
            result.disagreements.append(Disagreement(sort, "overwritten", line))


def spoilt(run: Run, line: int, backward: int) -> bool:
    return any(line in spoil.writes and spoil.backward == backward for spoil in run.spoils)


def accuses(defect: Defect, line: int, backward: int, result: Comparison) -> bool:
    """Whether a defect says that a line overwrites what a backward needs; one that is too late, any."""
    if defect.kind not in WRITES:
        return False
    named = lines_as(defect, Role.BACKWARD, Role.BACKWARD_NEEDS)
    late = any(f.key != "overwritten" for run in result.runs for f in run.failures)
    if named and backward not in named and not late and backward <= result.program.lines:
        return False
    if line in culprit_lines(defect) | lines_as(defect, Role.OVERWRITTEN):
        return True
    return defect.kind == "inplace_module" and not still_writes(defect, line, result)


def still_writes(defect: Defect, line: int, result: Comparison) -> bool:
    """Whether a line overwrites something also when the module that is blamed is told not to."""
    source = unflagged(result.program.source, defect.culprit.line)
    program = replace(result.program, source=source or result.program.source)
    runs = run_all(program, result.bodies, watched=True)
    return any(line in spoil.writes for run in runs for spoil in run.spoils)


def miss(result: Comparison, found: Disagreement, failed: list[Run]) -> None:
    """A miss counts where every run fails, or every run in which some one statement takes part."""
    if len(failed) == len(result.runs):
        result.disagreements.append(found)
    elif has_culprit(result, found, failed):
        result.disagreements.append(replace(found, sort="missed under a flag"))
    else:
        result.count(f"may happen {found.about}")


def has_culprit(result: Comparison, found: Disagreement, failed: list[Run]) -> bool:
    """Whether some statement heals all failed runs when it is taken away, and runs in no other."""
    truths = [run.assignment for run in failed]
    for statement in statements(result.program.source, found.about):
        took_part = [run.assignment for run in result.runs if statement.lineno in run.executed]
        if took_part == truths and heals(result.program, statement, found, truths):
            return found.about != "overwritten" or overwrites(result.program, statement, truths)
    return False


def overwrites(program: Program, statement: ast.stmt, truths: list[tuple[bool, ...]]) -> bool:
    """Whether it fails for what a statement writes, and not for what it saves (`y.relu_()` does both)."""
    source = bare_write(program.source, statement.lineno)
    if source is None:
        return True
    runs = [run for run in run_all(replace(program, source=source)) if run.assignment in truths]
    return any(f.key == "overwritten" for run in runs for f in run.failures)


def statements(source: str, about: str) -> Iterator[ast.stmt]:
    """The simple statements; of an overwritten tensor only what may have written it."""
    everything = (
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.stmt) and not hasattr(n, "body")
    )
    for node in everything:
        if about != "overwritten" or binds_nothing(node) or out_of_place(source, node.lineno):
            yield node


def heals(program: Program, statement: ast.stmt, found: Disagreement, truths: list[tuple[bool, ...]]) -> bool:
    lines = removed(program.source.split("\n"), statement)
    if lines is None:
        return False
    runs = [run for run in run_all(replace(program, source="\n".join(lines))) if run.assignment in truths]
    return not any(run.invalid or any(f.key == found.about for f in run.failures) for run in runs)


MYSTERY = "from mystery import blur"
STEPS: dict[str, Callable[[Run], list[Step]]] = {
    "missing_zero_grad": lambda run: run.stale,
    "zero_grad_before_step": lambda run: run.erased,
}


def judge_steps(result: Comparison) -> None:
    """A step that used a stale gradient, or found its gradient erased, must be a defect."""
    for kind, steps_of in STEPS.items():
        runs = [run for run in result.runs if not run.failures and steps_of(run)]
        for step in (step for run in runs for step in steps_of(run)):
            if not reported(result, {kind}, {step.line, *step.backwards}):
                everywhere = all(run.failures or steps_of(run) for run in result.runs)
                sort = "missed" if everywhere else "missed under a flag"
                result.disagreements.append(Disagreement(sort, kind, step.line))
                break


UNSAID: dict[str, tuple[frozenset[str], Callable[[Run], list[int]]]] = {
    "leaf as root": (FLOW | {"severed_term"}, lambda run: run.leaf_roots),
    "backward that reached nothing": (FLOW, lambda run: run.lost),
    "grad of a non-leaf": (frozenset({"grad_of_non_leaf", "leaf_rebound"}), lambda run: run.non_leaf_reads),
    "leaf rebound": (frozenset({"leaf_rebound"}), lambda run: run.rebound),
}
"""Silent facts that may be meant so: nobody has to report them, but it is good to know how many go unsaid."""


def count_unsaid(result: Comparison) -> None:
    for fact, (kinds, lines_of_run) in UNSAID.items():
        lines = {line for run in result.runs if not run.failures for line in lines_of_run(run)}
        if lines:
            said = reported(result, kinds, lines)
            result.count(f"{'said' if said else 'unsaid'}: {fact}")


def judge_hidden_writes(result: Comparison) -> None:
    """A write through `.data` that changes what was saved must be a defect."""
    if any(run.failures for run in result.runs) or ".data" not in result.program.source:
        return
    loud = run_all(everywhere_loud(result.program), result.bodies, watched=True)
    for line in sorted({line for run in loud for spoil in run.spoils if spoil.told for line in spoil.writes}):
        hit = [run for run in loud if any(spoil.told and line in spoil.writes for spoil in run.spoils)]
        known = any(line in spoil.writes for run in result.watched for spoil in run.spoils)
        if known or reported(result, {"write_through_data"}, {line}):
            continue
        if any(run.invalid or run.failures for run in loud):
            result.count("apart: a write through data that can't be made loud")
        elif len(hit) == len([run for run in loud if line in run.executed]):
            sort = "missed" if len(hit) == len(loud) else "missed under a flag"
            result.disagreements.append(Disagreement(sort, "write_through_data", line))
