"""What is silently not trained: terms of a loss that lost their graph, optimizers that nothing reaches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from .claims import UNTRAINED
from .comparison import Comparison, Disagreement, reported
from .facts import Run
from .programs import Program
from .shadow import DETACHES, kept, rewritten, uncut, uncut_node
from .torchrun import run_all
from .trim import parses


def judge_silence(result: Comparison) -> None:
    """What backward never reaches though it should is a defect, or is counted with the reason for silence."""
    if any(run.failures for run in result.runs):
        return
    for cut in cuts(result.program.source):
        if not reported(result, UNTRAINED, {cut.lineno}):
            judge_cut(result, cut)
    judge_optimizers(result)


def judge_cut(result: Comparison, cut: ast.expr) -> None:
    """A cut that makes a term of a loss a constant, which changes no gradient, is pointless in it."""
    whole = uncut(cut)
    there = result.runs
    shifted = at(result.program, cut, f"({ast.unparse(cut)} + 1)")
    joined = at(result.program, cut, f"({ast.unparse(whole)})") if whole is not None else None
    if shifted is None or joined is None or cut.lineno != cut.end_lineno:
        return None
    moved, healed = run_all(shifted, result.bodies), run_all(joined, result.bodies)
    terms = [run for run in there if is_term(run, same(run, moved)) and gains(run, same(run, healed))]
    if not terms:
        return None
    trained = any((other := same(run, healed)) and other.trained > run.trained for run in terms)
    if is_meant(cut) and not trained:
        return result.count("apart: a detached term of what is trained by other ways")
    sort = "missed" if len(terms) == len(there) else "missed under a flag"
    if len(terms) < len([run for run in there if cut.lineno in run.executed]):
        return result.count("may happen severed_term")
    result.disagreements.append(Disagreement(sort, "severed_term", cut.lineno))
    return None


def cuts(source: str) -> Iterator[ast.expr]:
    """The outermost expressions that cut."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr) and kept(node) is not None and not makes_leaf(node):
            yield node
        else:
            waiting.extend(ast.iter_child_nodes(node))


def makes_leaf(node: ast.expr) -> bool:
    """Whether an expression is there to make a leaf."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Parameter", "Variable"))


def is_meant(cut: ast.expr) -> bool:
    """Whether a detach, or `.data`, is part of a cut: a number alone may be one by mistake."""
    inner: ast.expr | None = cut
    while inner is not None:
        name = (
            inner.func.attr if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) else ""
        )
        if name in DETACHES or (isinstance(inner, ast.Attribute) and inner.attr == "data"):
            return True
        inner = kept(inner)
    return False


def at(program: Program, node: ast.expr, text: str) -> Program | None:
    """The program with an expression replaced."""
    lines = program.source.split("\n")
    line = lines[node.lineno - 1]
    lines[node.lineno - 1] = line[: node.col_offset] + text + line[node.end_col_offset :]
    return replace(program, source="\n".join(lines)) if parses(lines) else None


def same(run: Run, others: list[Run]) -> Run | None:
    """The run under the same circumstances, where it came through."""
    for other in others:
        if (other.assignment, other.variant) == (run.assignment, run.variant):
            return other if not other.invalid and not other.failures else None
    return None


def is_term(run: Run, moved: Run | None) -> bool:
    """Whether a loss goes with what was added to an expression, and no gradient does."""
    if moved is None or len(moved.backwards) != len(run.backwards):
        return False
    pairs = list(zip(run.backwards, moved.backwards, strict=True))
    still = all((one.reached, one.mark) == (two.reached, two.mark) for one, two in pairs)
    return still and any(abs(one.value - two.value) > 1e-3 for one, two in pairs)


def gains(run: Run, healed: Run | None) -> bool:
    """Whether some backward brings another gradient."""
    if healed is None or len(healed.backwards) != len(run.backwards):
        return False
    pairs = zip(run.backwards, healed.backwards, strict=True)
    return any(one.reached < two.reached or abs(one.mark - two.mark) > 1e-3 for one, two in pairs)


def judge_optimizers(result: Comparison) -> None:
    """An optimizer that steps, none of whose parameters anything reaches, trains nothing."""
    for number in range(min(len(run.optimizers) for run in result.runs)):
        held = [run.optimizers[number] for run in result.runs]
        if not all(run.backwards for run in result.runs):
            continue  # it steps where nothing is trained at all
        if not all(one.steps and one.parameters and one.unreached == one.parameters for one in held):
            if any(one.steps and one.unreached for one in held):
                result.count("apart: a part of an optimizer's parameters that nothing reaches")
            continue
        lines = {one.line for one in held}.union(*({b.line for b in run.backwards} for run in result.runs))
        if reported(result, UNTRAINED, lines):
            continue
        if all(one.optimizers[number].unreached == held[0].parameters for one in uncut_runs(result)):
            result.count("apart: an optimizer whose parameters take no part in any loss")
        else:
            result.disagreements.append(Disagreement("missed", "unreached_parameters", held[0].line))


def uncut_runs(result: Comparison) -> list[Run]:
    """The runs of the program without any cut, where they come through."""
    source = rewritten(result.program.source, uncut_node)
    source = re.sub(r"with torch\.(no_grad|inference_mode)\(\):", "if True:", source)
    runs = run_all(replace(result.program, source=source), result.bodies)
    return [run for run in runs if not run.invalid and not run.failures]
