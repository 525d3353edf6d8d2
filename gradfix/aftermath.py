"""What a rewrite would leave behind: whether the backward that it is for fails then for another reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradfix.defects import Defect, Span
from gradfix.defects.records import Severed
from gradfix.source import Source, parse

if TYPE_CHECKING:
    from gradfix.plan import Plan
    from gradfix.rule import Fix
    from gradfix.tree import Tree


def rewritten(source: Source, tree: Tree, defect: Defect, fix: Fix | None) -> Source | None:
    """The text that a fix alone makes, where it is to join a graph again."""
    from gradfix.edits import apply

    if fix is None or not isinstance(defect.facts, Severed):
        return None
    after = parse(source.path, source.encode(apply(tree, fix.edits)))
    return after if isinstance(after, Source) else None


def then_fails(
    defect: Defect, before: Sequence[Defect], source: Source, after: Source, plan: Plan
) -> Iterator[Defect]:
    """What is certain to raise, and wasn't before, in the backward to which a graph was joined again."""
    from gradfix.patch import LineMap, unified

    backward = defect.facts.named().get("backward")
    if not isinstance(backward, Span):
        return
    onward = LineMap(unified(source.path, source.program, after.program))
    back = LineMap(unified(source.path, after.program, source.program))
    known = {(one.kind, onward.after(one.culprit.line)) for one in before}
    for one in plan.analyse(after, plan).defects:
        lines = {step.span.line for step in one.evidence if step.path is None}
        meets = any(back.after(line) in (backward.line, None) for line in lines)
        if meets and (one.kind, one.culprit.line) not in known and one.impact == "crashes" and not one.lean:
            yield one
