"""Holds the tape's defects against what torch did, and what torch did against the defects."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from .claims import FLOW, REQUIRED
from .comparison import Analyser, Comparison, Disagreement, lines_of
from .facts import Run, Step
from .instrument import binds_nothing
from .mend import bare_write, out_of_place
from .programs import Program
from .shadow import hidden_writes, with_telling_write
from .torchrun import run_all
from .trim import removed
from .verdicts import judge_defects


def compare(program: Program, analyse: Analyser) -> Comparison | None:
    """None where the program has a fault of its own that autograd has nothing to do with."""
    runs = [run for run in run_all(program) if not run.invalid]
    if not runs:
        return None
    result = Comparison(program, runs, tuple(analyse(program.source)))
    judge_defects(result)
    if program.opaque or unknown_arguments(program):
        return result
    judge_failures(result)
    judge_steps(result)
    judge_hidden_writes(result)
    count_unsaid(result)
    return result


def unknown_arguments(program: Program) -> bool:
    """Whether the file only defines things: what they are called with is unknown, and silence is right."""
    return bool(program.driver)


def judge_failures(result: Comparison) -> None:
    """The first failure of every run must be a defect; what comes after one stands on sand."""
    for key, (_, kinds) in REQUIRED.items():
        failed = [run for run in result.runs if run.failures and run.failures[0].key == key]
        missed = [run for run in failed if not reported(result, kinds, set(run.failures[0].lines))]
        if missed:
            first = missed[0].failures[0]
            same = [run for run in failed if run.failures[0].lines == first.lines]
            miss(result, Disagreement("missed", key, first.lines[-1], first.message), same)


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


def reported(result: Comparison, kinds: Iterable[str], lines: set[int]) -> bool:
    """Whether a defect of such a kind names one of the lines; what fails out of sight may have any."""
    wanted = set(kinds)
    unseen = not lines & set(range(result.program.lines + 1))
    return any(d.kind in wanted and (unseen or lines & lines_of(d)) for d in result.defects)


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
    "unreached parameters": (
        frozenset({"unreached_parameters"}),
        lambda run: [held.line for held in run.optimizers if held.steps and held.unreached],
    ),
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
    if any(run.failures for run in result.runs):
        return
    for line in hidden_writes(result.program.source):
        if not reported(result, {"write_through_data"}, {line}):
            judge_hidden_write(result, line)


def judge_hidden_write(result: Comparison, line: int) -> None:
    runs = run_all(with_telling_write(result.program, line))
    failed = [
        run for run in runs if not run.invalid and run.failures and run.failures[0].key == "overwritten"
    ]
    concerned = [run for run in result.runs if line in run.executed]
    if failed and len(failed) >= len(concerned):
        sort = "missed" if len(failed) == len(runs) else "missed under a flag"
        words = failed[0].failures[0].message
        result.disagreements.append(Disagreement(sort, "write_through_data", line, words))
