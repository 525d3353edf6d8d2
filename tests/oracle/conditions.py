"""Whether the condition of a defect holds in a run, as far as flags and the arms that were taken can tell."""

from __future__ import annotations

import ast

from .facts import Run


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
